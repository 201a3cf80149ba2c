package app

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"keep-proxy/config"
	"keep-proxy/proxy"
)

// environment is where scripts find the proxy and its CA. It implements
// admin.Environment.
type environment struct {
	*runListeners

	address func() string
	pem     []byte
	caFile  string
	bundle  string
}

// ProxyAddr implements admin.Environment.
func (e *environment) ProxyAddr() string { return e.address() }

// CAPEM implements admin.Environment.
func (e *environment) CAPEM() []byte { return e.pem }

// CAFile implements admin.Environment.
func (e *environment) CAFile() string { return e.caFile }

// BundleFile implements admin.Environment.
func (e *environment) BundleFile() string { return e.bundle }

// systemBundles are where systems keep their roots in one file.
var systemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
}

// writeBundle writes the system's roots and the CA into one file. Where the variables of a run
// or of env are set, that file itself is named as the system's roots, and holds the CA already.
func writeBundle(file string, ca *proxy.CA) error {
	roots, err := systemRoots()
	if err != nil {
		return err
	}
	roots = bytes.TrimRight(bytes.ReplaceAll(roots, ca.PEM(), nil), "\n")
	if len(roots) > 0 {
		roots = append(roots, "\n\n"...)
	}
	if err := replaceFile(file, append(roots, ca.PEM()...)); err != nil {
		return fmt.Errorf("write the bundle of roots: %w", err)
	}
	return nil
}

// systemRoots reads the system's roots; a system without any has none to combine.
func systemRoots() ([]byte, error) {
	candidates := systemBundles
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		candidates = append([]string{file}, candidates...)
	}
	for _, name := range candidates {
		roots, err := os.ReadFile(name) //nolint:gosec // The system's own roots, or the operator's.
		switch {
		case err == nil:
			return roots, nil
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("read the system's roots: %w", err)
		}
	}
	return nil, nil
}

// replaceFile writes a world-readable file whole or not at all.
func replaceFile(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// upstreamRoots are the system's roots and those of a PEM file.
func upstreamRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("proxy.upstream_ca: %w", err)
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("proxy.upstream_ca: %s holds no PEM certificate", file)
	}
	return pool, nil
}

// advertised is the proxy's address as sandboxes see it: the configured one, else
// that of the first TCP listener, with a loopback address for an unspecified one.
func advertised(c config.Proxy, listeners []net.Listener) string {
	if c.Advertise != "" {
		return c.Advertise
	}
	for _, l := range listeners {
		tcp, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			continue
		}
		if tcp.IP.IsUnspecified() {
			return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
		}
		return tcp.String()
	}
	return ""
}
