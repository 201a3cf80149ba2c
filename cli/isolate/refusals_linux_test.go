package isolate

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/cli/netns"
)

// trafficVariable tells this binary what to do as a command.
const trafficVariable = "ISOLATE_TEST_TRAFFIC"

// TestMain is the stage of a namespace, where this binary is executed as one.
func TestMain(m *testing.M) {
	if netns.IsStage() {
		os.Exit(netns.Stage())
	}
	os.Exit(m.Run())
}

// TestTraffic is the command.
func TestTraffic(t *testing.T) {
	onOneProcessor(t)
	switch os.Getenv(trafficVariable) {
	case "everything":
		refuseEach(t)
		carryOn(t)
	default:
		t.Skip("other tests run this in a namespace")
	}
	lastOne(t)
}

// inside starts the traffic in a namespace. It returns what shows the refusals, and waits for the end.
func inside(t *testing.T, traffic string) (packets *os.File, wait func()) {
	t.Helper()
	if err := netns.Check(true); err != nil {
		t.Skipf("no namespace can be had here: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	pid, n, err := netns.Start(netns.Spec{TCP: []string{"127.0.0.1:8080"}}, self, []string{self, "-test.run=^TestTraffic$"}, &os.ProcAttr{
		Env: append(os.Environ(), trafficVariable+"="+traffic), Files: []*os.File{output, output, output}, Sys: &syscall.SysProcAttr{},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(); output.Close() })
	return n.Packets, func() {
		t.Helper()
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status != 0 {
			text, _ := os.ReadFile(output.Name())
			t.Fatalf("the command ended with %v, %v:\n%s", status, err, text)
		}
	}
}

// onOneProcessor makes the kernel answer in the order of sending. So nothing is under way after the last answer.
func onOneProcessor(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for i := 0; one.Count() == 0; i++ {
		if all.IsSet(i) {
			one.Set(i)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
}

// refuseEach tries what nobody listens for.
func refuseEach(t *testing.T) {
	t.Helper()
	for _, target := range []string{"10.1.2.3:5432", "[2001:db8::1]:5432", "127.0.0.1:9", "127.0.0.1:9", "127.0.0.1:9"} {
		if c, err := net.Dial("tcp", target); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("connecting to %s: %v, %v; want a refusal", target, c, err)
		}
	}
	for family, protocol := range map[int]int{unix.AF_INET: unix.IPPROTO_ICMP, unix.AF_INET6: unix.IPPROTO_ICMPV6} {
		if _, err := unix.Socket(family, unix.SOCK_DGRAM, protocol); !errors.Is(err, syscall.EACCES) {
			t.Errorf("a socket that can ping: %v; want a refusal", err)
		}
	}
	sendTo(t, "8.8.8.8:443", 2)
	sendTo(t, "[2001:4860:4860::8888]:443", 4)
}

// sendTo sends datagrams from a socket that hears of no refusal.
func sendTo(t *testing.T, target string, n int) {
	t.Helper()
	c, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range n {
		if _, err := c.WriteToUDPAddrPort([]byte("x"), netip.MustParseAddrPort(target)); err != nil {
			t.Fatal(err)
		}
	}
}

// carryOn ends connections by a reset, and sends datagrams that arrive.
func carryOn(t *testing.T) {
	t.Helper()
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted.(*net.TCPConn).SetLinger(0)
		accepted.Close()
		mustBeReset(t, "client", c)
		heard, err := net.ListenPacket("udp", at)
		if err != nil {
			t.Fatal(err)
		}
		sendTo(t, heard.LocalAddr().String(), 10)
	}
}

// lastOne is refused, and hears of it after all else was.
func lastOne(t *testing.T) {
	t.Helper()
	c, err := net.Dial("udp", "192.0.2.1:1")
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("x"))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the last datagram: %v; want a refusal", err)
	}
}

// everything is what is refused of it.
var everything = []Refusal{
	{"udp", "[2001:4860:4860::8888]:443", 4},
	{"tcp", "127.0.0.1:9", 3},
	{"udp", "8.8.8.8:443", 2},
	{"tcp", "10.1.2.3:5432", 1},
	{"tcp", "[2001:db8::1]:5432", 1},
	{"udp", "192.0.2.1:1", 1},
}

func TestWatchCountsExactlyWhatIsRefused(t *testing.T) {
	packets, wait := inside(t, "everything")
	r := NewRefusals()
	end := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { end <- r.Watch(ctx, packets, netip.AddrPort.String) }()
	wait()
	cancel()
	err := <-end
	if got := r.List(); !slices.Equal(got, everything) {
		t.Errorf("refused %v\nwant    %v", got, everything)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestWatchCountsWhatIsStillQueued(t *testing.T) {
	packets, wait := inside(t, "everything")
	wait()
	if err := packets.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	r := NewRefusals()
	if err := r.Watch(t.Context(), packets, netip.AddrPort.String); err != nil {
		t.Fatal(err)
	}
	if got := r.List(); !slices.Equal(got, everything) {
		t.Errorf("refused %v\nwant    %v", got, everything)
	}
}

func TestTheKernelQueuesRefusalsAlone(t *testing.T) {
	packets, wait := inside(t, "everything")
	wait()
	want := 0
	for _, r := range everything {
		want += r.Count
	}
	raw, err := packets.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		stats, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err != nil || int(stats.Packets) != want {
			t.Errorf("%d packets passed the filter, %v; want %d", stats.Packets, err, want)
		}
	})
}

func TestWatchTakesOnlyASocket(t *testing.T) {
	packets, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	if err := NewRefusals().Watch(t.Context(), packets, netip.AddrPort.String); err == nil {
		t.Error("a file that is no socket is watched")
	}
}
