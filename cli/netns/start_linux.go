package netns

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// order is what a stage is told, as JSON in its first argument. The command's file and its arguments follow. Without a
// file the stage ends where it would execute it.
type order struct {
	Spec Spec `json:"spec"`
	// User is nil for our own.
	User *syscall.Credential `json:"user"`
}

// control is the stage's descriptor for what it tells: one packet with the listeners, or a failure. One comes back when the
// listeners were taken.
const control = 3

// maxSockets is less than one packet may pass (SCM_MAX_FD is 253).
const maxSockets = 250

// failure is what a stage tells if it can't execute the command.
type failure struct {
	// What is empty for execve itself.
	What  string        `json:"what"`
	Errno syscall.Errno `json:"errno"`
	Text  string        `json:"text"`
}

// Start starts a command, whose file is path, with attributes as [os.StartProcess] takes them, Sys included. It returns
// its process id once it is executed.
func Start(spec Spec, path string, args []string, attr *os.ProcAttr) (int, *Network, error) {
	if n := len(spec.TCP) + len(spec.UDP); n > maxSockets {
		return 0, nil, &Error{"listen", fmt.Errorf("%d ports are more than %d", n, maxSockets)}
	}
	sys := *attr.Sys
	user := sys.Credential
	sys.Credential = nil
	said, err := json.Marshal(order{spec, user})
	if err != nil {
		return 0, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, &Error{"socketpair", err}
	}
	defer func() { _ = unix.Close(pair[0]) }()
	theirs := os.NewFile(uintptr(pair[1]), "stage")
	inner := &os.ProcAttr{Dir: attr.Dir, Env: attr.Env, Files: append(attr.Files[:control:control], theirs)}
	stage, err := startStage(append([]string{stageName, string(said), path}, args...), inner, &sys)
	_ = theirs.Close()
	if err != nil {
		return 0, nil, &Error{"clone", errors.Unwrap(err)} // without the name of this program's own file
	}
	found, err := hear(pair[0], spec)
	if err != nil {
		_ = stage.Kill() // It may wait.
		_, _ = stage.Wait()
		return 0, nil, err
	}
	pid := stage.Pid
	// The caller reaps it.
	_ = stage.Release()
	return pid, found, nil
}

// startStage starts the stage in namespaces of its own. Where not all of root's ids may be there, its own is enough.
func startStage(argv []string, attr *os.ProcAttr, sys *syscall.SysProcAttr) (stage *os.Process, err error) {
	own := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	tries := [][2][]syscall.SysProcIDMap{{own(os.Getuid()), own(os.Getgid())}}
	if os.Geteuid() == 0 {
		tries = append([][2][]syscall.SysProcIDMap{{idMap("/proc/self/uid_map"), idMap("/proc/self/gid_map")}}, tries...)
	}
	for i, ids := range tries {
		a := *sys
		a.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
		a.UidMappings, a.GidMappings = ids[0], ids[1]
		a.GidMappingsEnableSetgroups = i < len(tries)-1
		a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW}
		attr.Sys = &a
		if stage, err = os.StartProcess("/proc/self/exe", argv, attr); err == nil {
			break
		}
	}
	return stage, err
}

// idMap maps every id of our own namespace to itself.
func idMap(file string) (out []syscall.SysProcIDMap) {
	text, _ := os.ReadFile(file) // Without a map the kernel refuses.
	for line := range strings.Lines(string(text)) {
		var first, outside, size int
		if _, err := fmt.Sscan(line, &first, &outside, &size); err == nil {
			out = append(out, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
		}
	}
	return out
}

// hear waits until the stage has executed the command.
func hear(from int, spec Spec) (found *Network, err error) {
	defer func() {
		if err != nil && found != nil {
			found.Close()
		}
	}()
	for {
		packet, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*(maxSockets+1)))
		n, oobn, flags, _, err := unix.Recvmsg(from, packet, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return found, &Error{"hear the stage", err}
		case oobn > 0 || flags&unix.MSG_CTRUNC != 0:
			if found, err = adopt(rights[:oobn], spec); err == nil {
				_, err = unix.Write(from, []byte{1}) // Go on.
			}
			if err != nil {
				return found, &Error{"take the listeners", err}
			}
		case n > 0:
			return found, heard(packet[:n])
		case found == nil:
			return nil, &Error{"stage", errors.New("it ended without a word")}
		default:
			return found, nil // Its descriptor was closed by execve.
		}
	}
}

// heard is a failure that the stage told.
func heard(packet []byte) error {
	var f failure
	if err := json.Unmarshal(packet, &f); err != nil {
		return &Error{"hear the stage", err}
	}
	var cause error = f.Errno
	if f.Errno == 0 {
		cause = errors.New(f.Text)
	}
	if f.What == "" {
		return cause
	}
	return &Error{f.What, cause}
}

// adopt takes over what the stage opened, in the order in which it sent it. The kernel leaves out what there is no
// descriptor for.
func adopt(rights []byte, spec Spec) (n *Network, err error) {
	n = &Network{}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return n, cmp.Or(err, error(unix.EMFILE))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if len(fds) <= len(spec.TCP)+len(spec.UDP) {
		err = cmp.Or(err, error(unix.EMFILE))
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "netns")
		var fault error
		switch {
		case i == 0:
			n.Packets = f
			continue
		case i <= len(spec.TCP):
			l, failed := net.FileListener(f)
			if fault = failed; fault == nil {
				n.TCP = append(n.TCP, l)
			}
		default:
			var c net.PacketConn
			c, fault = net.FilePacketConn(f)
			u, _ := c.(*net.UDPConn)
			n.UDP = append(n.UDP, u)
		}
		err = cmp.Or(err, fault, f.Close())
	}
	return n, err
}
