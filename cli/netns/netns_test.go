//go:build linux

package netns

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain is the stage, where this binary is executed as one, and plays commands: "dial ADDRESS…" tells of each how
// connecting ends; "status" prints what /proc says of this process; "leave WAY…" tries ways out, and says how each ended.
func TestMain(m *testing.M) {
	if IsStage() {
		os.Exit(Stage())
	}
	if len(os.Args) > 1 && os.Args[1] == "play" {
		play(os.Args[2:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(words []string) {
	switch words[0] {
	case "dial":
		for _, address := range words[1:] {
			c, err := net.Dial("tcp", address)
			if err != nil {
				fmt.Println(address, errors.Is(err, unix.ECONNREFUSED), err)
				continue
			}
			fmt.Fprintln(c, address)
			text, _ := io.ReadAll(c)
			fmt.Println(address, string(text))
		}
	case "forbidden": // in a user namespace of its own
		err := os.WriteFile("/proc/sys/user/max_net_namespaces", []byte("0"), 0)
		e, _ := errors.AsType[*Error](Check(false))
		fmt.Println(e.Fix(), err)
	case "leave":
		for _, way := range words[1:] {
			fmt.Println(leave(strings.Fields(way)))
		}
	case "status":
		text, _ := os.ReadFile("/proc/self/status")
		fmt.Print(string(text))
	}
}

// possible says why no namespace can be had here.
var possible = sync.OnceValue(func() error { return Check(true) })

// start starts this binary as a command in a namespace, and returns what it prints.
func start(t *testing.T, spec Spec, words ...string) (*Network, func() string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startAs(t, self, nil, spec, words...)
}

// startAs is start for a copy of this binary and another user; nil is our own.
func startAs(t *testing.T, self string, user *syscall.Credential, spec Spec, words ...string) (*Network, func() string) {
	t.Helper()
	if err := possible(); err != nil {
		t.Skipf("no namespace can be had here: %v", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	pid, n, err := Start(spec, self, append([]string{self, "play"}, words...), &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{null, write, os.Stderr}, Sys: &syscall.SysProcAttr{Credential: user},
	})
	_ = write.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n, func() string {
		text, _ := io.ReadAll(read)
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status != 0 {
			t.Errorf("it ended with %v: %v", status, err)
		}
		return string(text)
	}
}

// echo answers each connection with the address that it came to.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = bufio.NewReader(c).ReadString('\n')
		fmt.Fprint(c, "reached ", c.LocalAddr())
		_ = c.Close()
	}
}

// Each start has three descriptors more, until there are enough for all. One that fails may lose two (os.StartProcess).
func TestACommandIsStartedOnlyIfAllListenersWereTaken(t *testing.T) {
	if err := possible(); err != nil {
		t.Skipf("no namespace can be had here: %v", err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	began := filepath.Join(t.TempDir(), "began")
	spec := Spec{TCP: []string{"127.0.0.1:8080", ":80", ":443", ":53"}, UDP: []string{":53"}}
	for room := uint64(0); ; room += 3 {
		fewer := limit
		fewer.Cur = uint64(none.Fd()) + room
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &fewer); err != nil {
			t.Fatal(err)
		}
		pid, n, err := Start(spec, "/bin/sh", []string{"sh", "-c", "echo >" + began}, &os.ProcAttr{
			Env: os.Environ(), Files: []*os.File{none, none, none}, Sys: &syscall.SysProcAttr{},
		})
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
		if err == nil {
			defer n.Close()
			_, _ = syscall.Wait4(pid, nil, 0, nil)
			if len(n.TCP) != 4 || len(n.UDP) != 1 || n.Packets == nil {
				t.Errorf("with room for %d descriptors it was started with %+v", room, n)
			}
			return
		}
		if _, started := os.Stat(began); room > 100 || started == nil {
			t.Fatalf("with room for %d descriptors: %v, and the command was started: %v", room, err, started == nil)
		}
	}
}

func TestEveryAddressIsTheListeners(t *testing.T) {
	all := []string{"10.1.2.3:443", "127.0.0.53:443", "[2001:db8::1]:443", "[::1]:443", "8.8.8.8:443"}
	n, end := start(t, Spec{TCP: []string{"127.0.0.1:8080", ":443"}}, append([]string{"dial", "127.0.0.1:8080", "127.0.0.1:8081", "10.0.0.1:8080"}, all...)...)
	go echo(n.TCP[1])
	go echo(n.TCP[0])
	said := end()
	for _, address := range append(all, "127.0.0.1:8080") {
		if !strings.Contains(said, address+" reached "+address) {
			t.Errorf("%s isn't the listener's:\n%s", address, said)
		}
	}
	for _, address := range []string{"127.0.0.1:8081", "10.0.0.1:8080"} {
		if !strings.Contains(said, address+" true") {
			t.Errorf("%s isn't refused:\n%s", address, said)
		}
	}
}

func TestTheCommandHasNoCapability(t *testing.T) {
	_, end := start(t, Spec{TCP: []string{"127.0.0.1:8080"}}, "status")
	said := end()
	for _, line := range []string{"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !strings.Contains(said, line) {
			t.Errorf("no %q in\n%s", line, said)
		}
	}
}

func TestTheSwitchThatForbidsItIsNamed(t *testing.T) {
	if err := possible(); err != nil {
		t.Skipf("no namespace can be had here: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "play", "forbidden")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if !strings.HasPrefix(string(out), "user.max_net_namespaces") || !strings.HasSuffix(string(out), "<nil>\n") {
		t.Errorf("%v: it says %q", err, out)
	}
}

func TestWhatMayForbidItFollowsFromTheError(t *testing.T) {
	port, other := (&Error{listenOn + ":443", syscall.EACCES}).Fix(), (&Error{"clone", syscall.EPERM}).Fix()
	if port == "" || other == "" || port == other {
		t.Errorf("of a port %q, else %q", port, other)
	}
	if fix := (&Error{"clone", syscall.ENOMEM}).Fix(); fix != "" {
		t.Errorf("nobody forbids it: %q", fix)
	}
}
