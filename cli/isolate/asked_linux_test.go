package isolate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideVariable makes TestAnswersComeFromTheAddressAsked the one in the namespace.
const insideVariable = "ISOLATE_TEST_INSIDE"

// TestAnswersComeFromTheAddressAsked asks in a namespace where each address is local. A connected socket takes an
// answer only from the address that it asked.
func TestAnswersComeFromTheAddressAsked(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		outsideOf(t)
		return
	}
	if err := everyAddressIsLocal(t); err != nil {
		fmt.Println("REFUSED:", err)
		return
	}
	n := NewNames(outside)
	for listen, servers := range map[string][]string{
		"0.0.0.0:53": {"10.1.2.3:53", "127.0.0.53:53"}, // a kernel without IPv6
		"[::]:53":    {"10.1.2.3:53", "127.0.0.1:53", "127.0.0.53:53", "198.18.0.9:53", "[::1]:53", "[2001:db8::1]:53", "[2001:2::9]:53"},
	} {
		for _, server := range servers {
			t.Run(listen+" asked as "+server, func(t *testing.T) { askFrom(t, n, listen, server) })
		}
	}
}

// askFrom asks a socket that listens on every address, by one of them, and by Go's own resolver.
func askFrom(t *testing.T, n *Names, listen, server string) {
	t.Helper()
	config := net.ListenConfig{Control: func(network, _ string, c syscall.RawConn) error { return tellAddress(network, c) }}
	socket, err := config.ListenPacket(t.Context(), "udp", listen)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := socket.(*net.UDPConn)
	if !ok {
		t.Fatalf("a socket is %T", socket)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.ServePackets(context.WithoutCancel(t.Context()), c) }()
	defer func() {
		_ = c.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}}
	addrs, err := r.LookupNetIP(t.Context(), "ip", "api.shop.test.")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(addrs), "[198.18.0.2 2001:2::2]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	fmt.Println("ANSWERED", listen, server)
}

// tellAddress makes a socket tell which address was asked, as the namespace's does.
func tellAddress(network string, c syscall.RawConn) (err error) {
	refused := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		if network == "udp6" {
			err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1))
		}
	})
	return errors.Join(refused, err)
}

// outsideOf runs this test again in a namespace.
func outsideOf(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran {
		t.Skipf("no namespace can be made here: %v", err)
	}
	if _, why, refused := strings.Cut(string(out), "REFUSED: "); refused {
		t.Skipf("no address can be made local here: %s", why)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got := bytes.Count(out, []byte("ANSWERED ")); got != 9 {
		t.Errorf("%d of 9 were answered:\n%s", got, out)
	}
}

// everyAddressIsLocal raises lo, and routes everything to it.
func everyAddressIsLocal(t *testing.T) error {
	t.Helper()
	for _, command := range []string{"link set lo up", "route add local default dev lo", "-6 route add local default dev lo"} {
		if out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, out)
		}
	}
	return nil
}
