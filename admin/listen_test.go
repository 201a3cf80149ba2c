package admin_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"keep-proxy/admin"
)

func TestListenRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, address, want string }{
		{"every interface", ":8081", "served on loopback alone"},
		{"every interface, spelt out", "0.0.0.0:8081", "served on loopback alone"},
		{"another machine's name", "keep.example:8081", "served on loopback alone"},
		{"no port", "127.0.0.1", "write 127.0.0.1:8081 or unix:/path"},
		{"nothing", "", "write 127.0.0.1:8081 or unix:/path"},
		{"a folder that isn't there", "unix:/nonexistent/keep/admin.sock", "admin.listen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ln, err := admin.Listen(c.address)
			if err == nil {
				ln.Close()
				t.Fatal("it listens")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestListenOnATakenPort(t *testing.T) {
	t.Parallel()
	first, err := admin.Listen("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := admin.Listen(first.Addr().String()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}

func TestListenOnASocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "admin.sock")
	first, err := admin.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if _, err := admin.Listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "another program listens there") {
		t.Errorf("a socket in use: %v", err)
	}
	// A killed process leaves its socket behind.
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	first.Close()
	second, err := admin.Listen("unix:" + path)
	if err != nil {
		t.Fatalf("a socket left behind: %v", err)
	}
	second.Close()
	if err := os.WriteFile(path, []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "in the way and no socket") {
		t.Errorf("a file in the way: %v", err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "notes" {
		t.Errorf("the file in the way was changed: %q, %v", content, err)
	}
}

// A socket is left behind if nobody listens there, and not if it can't be connected to.
func TestASocketThatIsInUseIsNotRemoved(t *testing.T) {
	t.Parallel()
	path := func(name string) string { return filepath.Join(t.TempDir(), name) }
	datagrams := path("datagrams.sock")
	one, err := net.ListenPacket("unixgram", datagrams)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	// As many clients wait as may, none of whom the program has answered yet.
	busy := path("busy.sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: busy}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 64 {
		client, err := net.Dial("unix", busy)
		if err != nil {
			break
		}
		defer client.Close()
	}
	for name, path := range map[string]string{"of another kind": datagrams, "of a busy program": busy} {
		if path == busy && runtime.GOOS != "linux" {
			continue // Elsewhere a client too many is refused as by nobody.
		}
		ln, err := admin.Listen("unix:" + path)
		if err == nil {
			ln.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "can't be seen") {
			t.Errorf("a socket %s: %v", name, err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("a socket %s was removed: %v", name, err)
		}
	}
}
