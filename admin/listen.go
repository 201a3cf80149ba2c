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

// Listen opens a loopback host:port or unix:/path for an API without TLS.
func Listen(address string) (net.Listener, error) {
	const key = "admin.listen"
	if !strings.HasPrefix(address, "unix:") {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w; write 127.0.0.1:8081 or unix:/path", key, address, err)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("%s %q: the admin API is served on loopback alone; write 127.0.0.1:8081 or unix:/path", key, address)
		}
	}
	ln, err := ListenOpenly(key, address)
	if err == nil {
		err = checkLoopback(ln)
	}
	if err != nil {
		return nil, err
	}
	return ln, nil
}

// ListenOpenly opens host:port, which others may reach, or unix:/path. A socket's mode is 0600. A socket that nobody
// listens on any more is replaced; any other file in its place is not. The configuration's key is for errors.
func ListenOpenly(key, address string) (net.Listener, error) {
	// Opening a listener doesn't wait for anything that could be cancelled.
	ctx, network := context.Background(), "tcp"
	path, socket := strings.CutPrefix(address, "unix:")
	if socket {
		if err := RemoveStale(ctx, path); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		network, address = "unix", path
	}
	ln, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if socket {
		if err := os.Chmod(path, 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", key, err), ln.Close())
		}
	}
	return ln, nil
}

// RemoveStale makes room for a socket at path. It removes one whose listener is gone, as a
// program that was killed leaves it behind. What is listened on, or is no socket, is an error.
// So is a socket that can't be connected to for another reason than that nobody listens. Such
// are another user's, one of datagrams, and that of a program with too many clients.
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

// checkLoopback refuses, and closes, a listener that others than this machine can reach. A name
// such as localhost may point anywhere.
func checkLoopback(ln net.Listener) error {
	switch a := ln.Addr().(type) {
	case *net.UnixAddr:
		return nil
	case *net.TCPAddr:
		if a.IP.IsLoopback() {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("admin.listen: %s isn't a loopback address", ln.Addr()), ln.Close())
}
