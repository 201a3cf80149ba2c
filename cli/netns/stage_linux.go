package netns

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Stage makes the network and executes the command. It returns only where it can't, and for Check.
func Stage() int {
	// Capabilities, no_new_privs and the signal at the parent's end belong to one thread.
	runtime.LockOSThread()
	parent := os.Getppid()
	unix.CloseOnExec(control)
	err := stage(parent)
	if err == nil {
		return 0
	}
	f := failure{Text: err.Error()}
	if e, ok := errors.AsType[*Error](err); ok {
		f.What, f.Text = e.What, e.Err.Error()
	}
	f.Errno, _ = errors.AsType[syscall.Errno](err)
	if packet, err := json.Marshal(f); err == nil {
		_ = unix.Sendmsg(control, packet, nil, nil, 0)
	}
	return 1
}

func stage(parent int) error {
	if len(os.Args) < 3 {
		return &Error{"stage", errors.New("it was told nothing")}
	}
	var o order
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		return &Error{"stage", err}
	}
	if err := raise(); err != nil {
		return err
	}
	if err := offer(o.Spec); err != nil {
		return err
	}
	if path := os.Args[2]; path != "" {
		if err := become(o.User, parent); err != nil {
			return err
		}
		if err := closeSockets(); err != nil {
			return &Error{"close descriptors", err}
		}
		return syscall.Exec(path, os.Args[3:], os.Environ()) //nolint:gosec // the command is the caller's
	}
	return nil
}

// offer opens what the spec says, and passes it out. All of it stays open here until execve closes it.
func offer(spec Spec) error {
	packets, err := openPackets()
	if err != nil {
		return &Error{"open a packet socket", err}
	}
	fds := []int{packets}
	config := net.ListenConfig{Control: tellAddress}
	config.SetMultipathTCP(false)
	add := func(socket any) error {
		s, _ := socket.(syscall.Conn)
		raw, err := s.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
		}
		return err
	}
	for _, address := range spec.TCP {
		l, err := config.Listen(context.Background(), "tcp", address)
		if err == nil {
			err = add(l)
		}
		if err != nil {
			return &Error{listenOn + address, err}
		}
	}
	for _, address := range spec.UDP {
		c, err := config.ListenPacket(context.Background(), "udp", address)
		if err == nil {
			err = add(c)
		}
		if err != nil {
			return &Error{listenOn + "udp " + address, err}
		}
	}
	if err := unix.Sendmsg(control, nil, unix.UnixRights(fds...), nil, 0); err != nil {
		return &Error{"pass the listeners out", err}
	}
	if n, err := unix.Read(control, make([]byte, 1)); n != 1 {
		return &Error{"wait until the listeners are taken", err}
	}
	return nil
}

// tellAddress lets answers by UDP come from the address that was asked, although no interface has it.
func tellAddress(network, _ string, c syscall.RawConn) (err error) {
	if !strings.HasPrefix(network, "udp") {
		return nil
	}
	failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		if network == "udp6" { // So is one of both families called.
			err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1))
		}
	})
	return errors.Join(failed, err)
}

// become gives this thread what the command may have: the user's ids, and no capability, now or later.
func become(user *syscall.Credential, parent int) error {
	if user != nil {
		var groups []int
		for _, g := range user.Groups {
			groups = append(groups, int(g))
		}
		if err := errors.Join(syscall.Setgroups(groups), syscall.Setgid(int(user.Gid)), syscall.Setuid(int(user.Uid))); err != nil {
			return &Error{"become the user", err}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &Error{"no_new_privs", err}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData // two words of 32 capabilities
	if err := unix.Capset(&header, &none[0]); err != nil {
		return &Error{"drop capabilities", err}
	}
	// Another user's ids clear it, and each thread has its own.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return &Error{"follow the parent", err}
	}
	if os.Getppid() != parent {
		return &Error{"follow the parent", errors.New("it has ended")}
	}
	return nil
}

// closeSockets lets execve close every socket beside the standard streams by which something could be sent past the
// namespace. Those of Unix stay.
func closeSockets() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < control {
			continue
		}
		// Whatever is no socket has no domain.
		if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && domain != unix.AF_UNIX {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
