package app

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/admin"
	"keep-proxy/config"
)

// adminCertificate is the admin API's certificate. Its files are read again when they have changed, so that a renewed
// one needs no restart. While they can't be read, the last that could be is shown.
type adminCertificate struct {
	files config.AdminTLS
	log   zerolog.Logger

	mu   sync.Mutex
	cert *tls.Certificate
	seen [2]fileState
}

// fileState tells one content of a file from the next.
type fileState struct {
	changed time.Time
	size    int64
}

func stateOfFile(name string) fileState {
	info, err := os.Stat(name)
	if err != nil {
		return fileState{}
	}
	return fileState{info.ModTime(), info.Size()}
}

// newAdminCertificate is nil without TLS.
func newAdminCertificate(files config.AdminTLS, log zerolog.Logger) (*adminCertificate, error) {
	if !files.Enabled() {
		return nil, nil
	}
	c := &adminCertificate{files: files, log: log}
	if err := c.read(c.states()); err != nil {
		return nil, fmt.Errorf("admin.tls: %w", err)
	}
	return c, nil
}

func (c *adminCertificate) states() [2]fileState {
	return [2]fileState{stateOfFile(c.files.CertFile), stateOfFile(c.files.KeyFile)}
}

// read takes the files as they are now.
func (c *adminCertificate) read(seen [2]fileState) error {
	if info, err := os.Stat(c.files.KeyFile); err == nil && info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("%s can be read by everybody (mode %#o): run chmod o-rwx %s", c.files.KeyFile, info.Mode().Perm(), c.files.KeyFile)
	}
	cert, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return err
	}
	c.cert, c.seen = &cert, seen
	return nil
}

// current is what is shown now.
func (c *adminCertificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seen := c.states(); seen != c.seen {
		if err := c.read(seen); err != nil {
			// Both files are never replaced in one step.
			c.log.Warn().Err(err).Msg("admin.tls: the certificate can't be read; the one from before is shown")
		}
	}
	return c.cert
}

// config is how a listener is served.
func (c *adminCertificate) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// names reports whether the certificate is host's.
func (c *adminCertificate) names(host string) bool {
	leaf := c.current().Leaf
	if leaf == nil {
		return false
	}
	return leaf.VerifyHostname(host) == nil
}

// adminTokens are the configured ones in the API's words. A role that it doesn't know is
// refused there.
func adminTokens(configured []config.AdminToken) []admin.Token {
	var out []admin.Token
	for _, t := range configured {
		out = append(out, admin.Token{Name: t.Name, Role: admin.Role(t.Role), SHA256: t.SHA256})
	}
	return out
}

// publicHosts are the names under which people reach the API.
func publicHosts(publicURL string) []string {
	u, err := url.Parse(publicURL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return []string{u.Hostname()}
}
