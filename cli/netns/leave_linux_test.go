package netns

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// nobody is a user without rights.
const nobody = 65534

// leave tries one way out, and says how it ended: with done, or with the kernel's error. After the word raised it raises
// the loopback interface first.
func leave(words []string) string {
	if words[0] == "raised" {
		if err := raise(); err != nil {
			return "its own interface: " + err.Error()
		}
		words = words[1:]
	}
	err := ways[words[0]](words[1:]...)
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return unix.ErrnoName(errno)
	}
	if err != nil {
		return err.Error()
	}
	return "done"
}

// ways are what a command may try.
var ways = map[string]func(args ...string) error{
	"open": func(args ...string) error { f, err := os.Open(args[0]); defer func() { _ = f.Close() }(); return err },
	"address": func(...string) error {
		address, err := netlink.ParseAddr("10.9.9.9/32")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: loopback}}, address)
	},
	"route": func(...string) error {
		_, every, err := net.ParseCIDR("10.9.9.0/24")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: loopback, Dst: every})
	},
	"down": func(...string) error {
		return netlink.LinkSetDown(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: loopback}})
	},
	"link": func(...string) error {
		return netlink.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "keep0"}})
	},
	"tun": func(...string) error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		tun, err := unix.NewIfreq("keep0")
		if err != nil {
			return err
		}
		tun.SetUint16(unix.IFF_TUN)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, tun)
	},
	// socket DOMAIN TYPE PROTOCOL
	"socket": func(args ...string) error {
		n := numbersOf(args)
		_, err := unix.Socket(n[0], n[1], n[2])
		return err
	},
	"setns": func(args ...string) error {
		fd, err := unix.Open(args[0], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return unix.Setns(fd, unix.CLONE_NEWNET)
	},
	"setns-pidfd": func(args ...string) error {
		fd, err := unix.PidfdOpen(numbersOf(args)[0], 0)
		if err != nil {
			return err
		}
		return unix.Setns(fd, unix.CLONE_NEWNET)
	},
	"getfd": func(args ...string) error {
		n := numbersOf(args)
		fd, err := unix.PidfdOpen(n[0], 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, n[1], 0)
		return err
	},
	"trace": func(args ...string) error { return unix.PtraceSeize(numbersOf(args)[0]) },
	"dial": func(args ...string) error {
		c, err := net.Dial(args[0], args[1])
		if err != nil {
			return err
		}
		if _, err = c.Write([]byte("x")); err == nil && args[0] == "udp" {
			_, err = c.Read(make([]byte, 1))
		}
		return err
	},
	// write FD sends a byte by an inherited descriptor.
	"write": func(args ...string) error {
		_, err := unix.Write(numbersOf(args)[0], []byte("x"))
		return err
	},
	// setuid FILE ends well if the file, whose user is another and is set, doesn't get that user's rights.
	"setuid": func(args ...string) error {
		out, err := exec.Command(args[0], "play", "status").Output()
		ids := fmt.Sprintf("Uid:\t%d\t%d\t%d\t%d\n", os.Getuid(), os.Getuid(), os.Getuid(), os.Getuid())
		if err == nil && (!strings.Contains(string(out), ids) || !strings.Contains(string(out), "CapEff:\t0000000000000000")) {
			err = fmt.Errorf("it is somebody else: %s", out)
		}
		return err
	},
	// deeper WAY… tries a way in namespaces of its own, where it has every capability.
	"deeper": func(args ...string) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.Command(self, "play", "leave", "raised "+strings.Join(args, " "))
		// Without a map of ids, since a command of root's may not map root.
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
			AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE},
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return errors.New("it isn't started: " + err.Error() + ": " + string(out))
		}
		if word := strings.TrimSpace(string(out)); word != "done" {
			return errors.New(word)
		}
		return nil
	},
}

func numbersOf(words []string) (out []int) {
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			panic(err)
		}
		out = append(out, n)
	}
	return out
}

// openFolder is a folder that every user can enter, with this binary in it.
func openFolder(t *testing.T) (folder, self string) {
	t.Helper()
	folder = t.TempDir()
	for at := folder; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder, copySelf(t, filepath.Join(folder, "self"))
}

func copySelf(t *testing.T, to string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(to, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// users are those as whom a command can be started from here: ours, and as root another one.
func users() map[string]*syscall.Credential {
	all := map[string]*syscall.Credential{"as ourselves": nil}
	if os.Geteuid() == 0 {
		all["as another user"] = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return all
}

// A command has no way out of its network. What it may still reach is named.
func TestLeaving(t *testing.T) {
	folder, self := openFolder(t)
	socket := filepath.Join(folder, "socket")
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	tcp, file := listen("tcp", "127.0.0.1:0"), listen("unix", socket)
	listen("unix", "@"+socket)
	if err := os.Chmod(socket, 0o777); err != nil {
		t.Fatal(err)
	}
	inherited := inheritable(t, tcp, file)
	parent, number := "/proc/"+strconv.Itoa(os.Getpid()), strconv.Itoa
	refused, forbidden := []string{"ECONNREFUSED"}, []string{"EPERM", "EACCES"}
	tries := map[string]struct {
		try  []string
		want []string
	}{
		"a raw socket of IPv4":                      {[]string{"socket", number(unix.AF_INET), number(unix.SOCK_RAW), number(unix.IPPROTO_ICMP)}, forbidden},
		"a raw socket of IPv6":                      {[]string{"socket", number(unix.AF_INET6), number(unix.SOCK_RAW), number(unix.IPPROTO_ICMPV6)}, forbidden},
		"an ICMP socket":                            {[]string{"socket", number(unix.AF_INET), number(unix.SOCK_DGRAM), number(unix.IPPROTO_ICMP)}, forbidden},
		"a packet socket":                           {[]string{"socket", number(unix.AF_PACKET), number(unix.SOCK_RAW), number(unix.ETH_P_ALL)}, forbidden},
		"another address":                           {[]string{"address"}, forbidden},
		"another route":                             {[]string{"route"}, forbidden},
		"taking loopback down":                      {[]string{"down"}, forbidden},
		"an interface of its own":                   {[]string{"link"}, append([]string{"EOPNOTSUPP"}, forbidden...)},
		"a tunnel of its own":                       {[]string{"tun"}, append([]string{"ENOENT", "ENODEV"}, forbidden...)},
		"the starter's network":                     {[]string{"setns", parent + "/ns/net"}, forbidden},
		"the first process's network":               {[]string{"setns", "/proc/1/ns/net"}, forbidden},
		"the starter's network by its process":      {[]string{"setns-pidfd", number(os.Getpid())}, forbidden},
		"a descriptor of the starter's":             {[]string{"getfd", number(os.Getpid()), number(inherited.tcp)}, forbidden},
		"tracing the starter":                       {[]string{"trace", number(os.Getpid())}, forbidden},
		"the starter's memory":                      {[]string{"open", parent + "/mem"}, forbidden},
		"a listener of the host":                    {[]string{"dial", "tcp", tcp.Addr().String()}, refused},
		"an address of IPv6":                        {[]string{"dial", "tcp", "[2001:db8::1]:443"}, refused},
		"an address of the link":                    {[]string{"dial", "tcp", "[fe80::1%lo]:443"}, append([]string{"EADDRNOTAVAIL", "ENETUNREACH"}, refused...)},
		"UDP":                                       {[]string{"dial", "udp", "192.0.2.1:443"}, refused},
		"UDP of IPv6":                               {[]string{"dial", "udp", "[2001:db8::1]:443"}, refused},
		"an abstract socket of the host":            {[]string{"dial", "unix", "@" + socket}, refused},
		"an inherited socket":                       {[]string{"write", number(inherited.tcp)}, []string{"EBADF"}},
		"an inherited socket of packets":            {[]string{"write", number(inherited.udp)}, []string{"EBADF"}},
		"the proxy from a network of its own":       {[]string{"deeper", "dial", "tcp", "127.0.0.1:8080"}, refused},
		"an address from a network of its own":      {[]string{"deeper", "dial", "tcp", "192.0.2.1:443"}, refused},
		"the starter's network from one of its own": {[]string{"deeper", "setns", parent + "/ns/net"}, forbidden},
		// These are reached: named limits.
		"the proxy":                     {[]string{"dial", "tcp", "127.0.0.1:8080"}, []string{"done"}},
		"a socket in the file system":   {[]string{"dial", "unix", socket}, []string{"done"}},
		"an inherited socket of Unix's": {[]string{"write", number(inherited.unix)}, []string{"done"}},
	}
	// Inherited descriptors come first, before something else has their numbers.
	names := slices.SortedFunc(maps.Keys(tries), func(a, b string) int {
		inherits := func(name string) string { return fmt.Sprint(!strings.HasPrefix(name, "an inherited"), name) }
		return strings.Compare(inherits(a), inherits(b))
	})
	words := []string{"leave"}
	for _, name := range names {
		words = append(words, strings.Join(tries[name].try, " "))
	}
	for as, user := range users() {
		t.Run(as, func(t *testing.T) {
			_, end := startAs(t, self, user, Spec{TCP: []string{"127.0.0.1:8080"}}, words...)
			said := strings.Split(strings.TrimSpace(end()), "\n")
			if len(said) != len(names) {
				t.Fatalf("%d lines of %d tries: %q", len(said), len(names), said)
			}
			for i, name := range names {
				if !slices.Contains(tries[name].want, said[i]) {
					t.Errorf("%s: got %q, want %q", name, said[i], tries[name].want)
				}
			}
		})
	}
}

// inheritance are descriptors that a program started from here gets.
type inheritance struct{ tcp, udp, unix int }

// inheritable connects to listeners, by sockets that an execve leaves open.
func inheritable(t *testing.T, tcp, file net.Listener) inheritance {
	t.Helper()
	leak := func(network, address string) int {
		c, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		raw, err := c.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		fd := -1
		if err := raw.Control(func(own uintptr) { fd, err = unix.Dup(int(own)) }); err != nil || fd < 0 {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	return inheritance{leak("tcp", tcp.Addr().String()), leak("udp", "127.0.0.1:9"), leak("unix", file.Addr().String())}
}

// A setuid program is the user that started it.
func TestASetuidProgramGainsNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make such a program")
	}
	folder, self := openFolder(t)
	for as, user := range users() {
		owner := 0
		if user == nil {
			owner = nobody
		}
		file := copySelf(t, filepath.Join(folder, strings.ReplaceAll(as, " ", "-")))
		if err := errors.Join(os.Chown(file, owner, owner), os.Chmod(file, 0o755|os.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
		outside := exec.Command(file, "play", "status")
		outside.SysProcAttr = &syscall.SysProcAttr{Credential: user}
		if out, err := outside.Output(); err != nil || !strings.Contains(string(out), "\t"+strconv.Itoa(owner)+"\t") {
			t.Skipf("it is nobody else outside either: %v", err)
		}
		_, end := startAs(t, self, user, Spec{TCP: []string{"127.0.0.1:8080"}}, "leave", "setuid "+file)
		if got := strings.TrimSpace(end()); got != "done" {
			t.Errorf("%s: %s", as, got)
		}
	}
}

// The namespaces of a user that is not root have that user's id alone.
func TestAnotherUserLeavesNeither(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("these tests are another user's already")
	}
	if err := possible(); err != nil {
		t.Skipf("no namespace can be had here: %v", err)
	}
	folder, self := openFolder(t)
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run", "^(TestLeaving|TestEveryAddressIsTheListeners|TestTheCommandHasNoCapability)$")
	cmd.Env, cmd.Dir = append(os.Environ(), "TMPDIR="+folder), folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "--- SKIP") && err == nil {
		t.Skipf("another user can't have one:\n%s", out)
	}
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
