package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
)

// unixPrefix begins the address of a unix socket ("unix:/run/keep/admin.sock").
const unixPrefix = "unix:"

// Listen opens a loopback host:port or unix:/path. A socket's mode is 0600; one
// that nobody listens on any more is replaced, any other file in its place is
// not.
func Listen(address string) (net.Listener, error) {
	// Opening a loopback socket doesn't wait for anything that could be cancelled.
	ctx := context.Background()
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		return listenUnix(ctx, listenKey, path)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("admin.listen %q: %w; write 127.0.0.1:8081 or unix:/path", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("admin.listen %q: the admin API is served on loopback alone; write 127.0.0.1:8081 or unix:/path", address)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	if err := checkLoopback(ln); err != nil {
		return nil, err
	}
	return ln, nil
}

// ListenTLS opens host:port, which others may reach, for a server with TLS.
func ListenTLS(address string) (net.Listener, error) { return listenTCP(listenKey, address) }

// ListenHealth opens host:port, which others may reach, or unix:/path, as [Listen] does,
// for [Server.ServeHealth].
func ListenHealth(address string) (net.Listener, error) {
	const key = "admin.health_listen"
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		return listenUnix(context.Background(), key, path)
	}
	return listenTCP(key, address)
}

// listenKey is the key of the API's own address, for errors.
const listenKey = "admin.listen"

// listenTCP opens host:port.
func listenTCP(key, address string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return ln, nil
}

// listenUnix opens a socket that its owner alone can connect to.
func listenUnix(ctx context.Context, key, path string) (net.Listener, error) {
	if err := RemoveStale(ctx, path); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", key, err), ln.Close())
	}
	return ln, nil
}

// RemoveStale makes room for a socket at path: it removes one whose listener is gone, as a
// program that was killed leaves it behind. What is listened on, or is no socket, is an
// error, and so is one that can't be connected to for another reason than that nobody
// listens: another user's, one of datagrams, or that of a program with too many clients.
func RemoveStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is in the way and no socket", path)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("%s: another program listens there", path), conn.Close())
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: whether another program listens there can't be seen: %w; remove it if none does, or choose another path", path, err)
	}
	return os.Remove(path)
}

// checkLoopback refuses, and closes, a listener that others can reach. A name
// such as localhost may point anywhere.
func checkLoopback(ln net.Listener) error {
	if isLoopback(ln.Addr()) {
		return nil
	}
	return errors.Join(fmt.Errorf("admin.listen: %s isn't a loopback address", ln.Addr()), ln.Close())
}

// isLoopback reports whether only this machine reaches an address.
func isLoopback(addr net.Addr) bool {
	switch a := addr.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	default:
		return false
	}
}
