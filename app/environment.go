package app

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"software.sslmate.com/src/go-pkcs12"

	"keep-proxy/config"
	"keep-proxy/ledger"
	"keep-proxy/proxy"
	"keep-proxy/upstream"
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

// writeBundle writes the system's roots and the CA into one file, and beside it as a trust store for Java. The variables
// of a run or of env may name that file as the system's roots. It holds the CA already then.
func writeBundle(file string, ca *proxy.CA) error {
	roots, err := systemRoots()
	if err != nil {
		return err
	}
	roots = bytes.TrimRight(bytes.ReplaceAll(roots, ca.PEM(), nil), "\n")
	if len(roots) > 0 {
		roots = append(roots, "\n\n"...)
	}
	bundle := slices.Concat(roots, ca.PEM())
	before, _ := os.ReadFile(file)
	if _, err := os.Stat(config.TrustStore(file)); err == nil && bytes.Equal(before, bundle) {
		return nil // The bundle is written last: both are whole.
	}
	if err := writeTrustStore(config.TrustStore(file), bundle); err != nil {
		return fmt.Errorf("write the trust store for Java: %w", err)
	}
	if err := replaceFile(file, bundle); err != nil {
		return fmt.Errorf("write the bundle of roots: %w", err)
	}
	return nil
}

// writeTrustStore writes the certificates of a bundle as Java takes them. Its password is no secret, and protects
// nothing. So its algorithms may be old: every Java from 8 on reads them. Newer ones need 8u301, 11.0.12 or 12.
func writeTrustStore(file string, bundle []byte) error {
	var entries []pkcs12.TrustStoreEntry
	for i, c := range certificates(bundle) {
		// Java keeps one certificate of each name, and subjects repeat.
		entries = append(entries, pkcs12.TrustStoreEntry{Cert: c, FriendlyName: fmt.Sprint(i)})
	}
	content, err := pkcs12.LegacyDES.EncodeTrustStoreEntries(entries, pkcs12.DefaultPassword)
	if err != nil {
		return err
	}
	return replaceFile(file, content)
}

// certificates are those of a PEM file. What is none is left out.
func certificates(text []byte) (all []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, c)
		}
	}
	return all
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

// replaceFile writes a world-readable file whole or not at all, also when power fails.
func replaceFile(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// upstreamTrust is what the system trusts, and a PEM file of authorities and of servers' own certificates.
func upstreamTrust(file string) (*upstream.Trust, error) {
	if file == "" {
		return &upstream.Trust{}, nil
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
	return &upstream.Trust{Roots: pool, Named: certificates(text)}, nil
}

// advertised is the proxy's address as sandboxes see it: the configured one, else that of the first TCP listener.
// Loopback replaces an unspecified address.
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

// listenerLinger is how long a run's own listener stays after the run's end. A script that continues is told why it may
// not, rather than that nobody answers.
const listenerLinger = time.Minute

// runListeners are the listeners that runs were given for themselves. They aren't
// kept in the ledger: after a restart such a run reaches nothing.
type runListeners struct {
	// address is proxy.run_listen, advertise proxy.advertise.
	address, advertise string
	proxy              *proxy.Proxy
	egress             *egress
	ledger             *ledger.Ledger
	log                zerolog.Logger

	mu      sync.Mutex
	closed  bool
	open    map[string]net.Listener // by token digest
	serving sync.WaitGroup
}

// OpenListener opens one for the run with this token digest, or returns the address
// of the one it has.
func (r *runListeners) OpenListener(ctx context.Context, digest string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.proxy == nil {
		return "", errors.New("the proxy isn't serving")
	}
	if l, ok := r.open[digest]; ok {
		return r.seen(l.Addr()), nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.address)
	if err != nil {
		return "", fmt.Errorf("proxy.run_listen %s: %w", r.address, err)
	}
	r.egress.protect(l.Addr())
	r.open[digest] = l
	r.serving.Go(func() { //nolint:contextcheck // A request ends with its connection.
		if err := r.proxy.ServeRun(l, digest); err != nil {
			r.log.Error().Err(err).Msg("a run's own listener ended")
		}
	})
	return r.seen(l.Addr()), nil
}

// CloseListener closes the run's listener, if it has one.
func (r *runListeners) CloseListener(digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.open[digest]; ok {
		r.end(digest, l)
	}
}

// end closes one; its address counts as ours until then. The lock is held.
func (r *runListeners) end(digest string, l net.Listener) {
	_ = l.Close()
	r.egress.release(l.Addr())
	delete(r.open, digest)
}

// sweep closes the listeners of runs that, by the wall clock, have been over for a while.
func (r *runListeners) sweep(ctx context.Context, now time.Time) error {
	for _, digest := range r.digests() {
		var run *ledger.Run
		err := r.ledger.View(ctx, func(v ledger.View) (err error) {
			run, err = v.RunByToken(digest)
			return err
		})
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			// Its run is being opened, or was refused: then whoever asked closes it.
		case err != nil:
			return err
		case !run.EndedAt.IsZero() && now.Sub(run.EndedAt) > listenerLinger:
			r.CloseListener(digest)
		}
	}
	return nil
}

func (r *runListeners) digests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]string, 0, len(r.open))
	for digest := range r.open {
		all = append(all, digest)
	}
	return all
}

// seen is the address as sandboxes see it. It has the host of proxy.advertise, if there is one, and the listener's own
// port.
func (r *runListeners) seen(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.String()
	}
	port := fmt.Sprint(tcp.Port)
	if host, _, err := net.SplitHostPort(r.advertise); err == nil {
		return net.JoinHostPort(host, port)
	}
	if tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return tcp.String()
}

// close closes all of them, for good, and waits until they have ended.
func (r *runListeners) close() {
	r.mu.Lock()
	r.closed = true
	for digest, l := range r.open {
		r.end(digest, l)
	}
	r.mu.Unlock()
	r.serving.Wait()
}
