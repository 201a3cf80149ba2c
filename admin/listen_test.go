package admin_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
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
