package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/program"
	"keep-proxy/reconcilers"
	"keep-proxy/rules"
)

// Bounds of a program that writes a credential.
const (
	credentialTimeout = 30 * time.Second
	credentialOutput  = 64 << 10
)

// credentials resolves what the operator configured for connectors, anew at each use, as files rotate. A program's
// credential is kept for as long as is configured.
type credentials struct {
	mu          sync.RWMutex
	byConnector map[string]*config.Credentials
	given       map[string]*givenCredential
	// vouchers are those in force, with the connectors whose keys sign for them.
	vouchers map[string]string
	// rules are those that came with the settings: they say where a credential may go.
	rules   *rules.Set
	sources config.Sources
	clock   clock.Clock
	run     func(ctx context.Context, s program.Spec) ([]byte, error)
}

// givenCredential is what a program wrote. One caller at a time asks it.
type givenCredential struct {
	mu    sync.Mutex
	value string        // of a key that signs, its voucher
	until time.Duration // on the boot-time clock: a token grows old while the machine sleeps
}

func newCredentials(c config.Connectors, set *rules.Set, k clock.Clock) *credentials {
	out := &credentials{
		sources: config.Sources{LookupEnv: os.LookupEnv, ReadFile: os.ReadFile},
		clock:   k, run: program.Run,
	}
	out.use(c, set)
	return out
}

// use puts other settings in force. Programs are asked again.
func (c *credentials) use(s config.Connectors, set *rules.Set) {
	configured, given, vouchers := make(map[string]*config.Credentials), make(map[string]*givenCredential), make(map[string]string)
	for _, s := range s.Settings {
		if s.Credentials != nil {
			configured[s.Connector], given[s.Connector] = s.Credentials, &givenCredential{}
		}
		if s.Credentials != nil && s.Credentials.SigV4 != nil {
			given[s.Connector].value = newVoucher()
			vouchers[given[s.Connector].value] = s.Connector
		}
	}
	c.mu.Lock()
	c.byConnector, c.given, c.vouchers, c.rules = configured, given, vouchers, set
	c.mu.Unlock()
}

// of is what is configured for a connector now, under any of its names, nil for nothing, and whether it covers the
// host.
func (c *credentials) of(connector, scheme, authority string) (configured *config.Credentials, given *givenCredential, covered bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if now := c.rules.Heir(connector); now != nil {
		connector = now.Name
	}
	return c.byConnector[connector], c.given[connector], c.rules.Covers(connector, scheme, authority)
}

// For implements reconcilers.Credentials.
func (c *credentials) For(connector, scheme, authority string) (header, value string, err error) {
	configured, given, covered := c.of(connector, scheme, authority)
	if configured == nil {
		return "", "", nil
	}
	if !covered {
		// A match from before a reload, or one that is pinned to an older file, may be for another host. That host has
		// nothing to do with the credential of now.
		return "", "", fmt.Errorf("%w: %s doesn't cover %s://%s now; where it shall, put the host among its hosts, in its file or in connectors.settings",
			reconcilers.ErrElsewhere, connector, scheme, authority)
	}
	switch {
	case configured.SigV4 != nil:
		value = given.value
	case len(configured.Exec) > 0:
		value, err = c.exec(configured, given)
	default:
		value, err = configured.Value.Resolve(c.sources)
	}
	if err != nil {
		return "", "", fmt.Errorf("connectors.settings: credentials of %s: %w", connector, err)
	}
	return configured.Header, value, nil
}

// exec asks the program, or returns what it wrote a while ago. A failure isn't kept.
func (c *credentials) exec(configured *config.Credentials, given *givenCredential) (string, error) {
	given.mu.Lock()
	defer given.mu.Unlock()
	if given.value != "" && c.clock.Boot() < given.until {
		return given.value, nil
	}
	out, err := c.run(context.Background(), program.Spec{
		Args: configured.Exec, Env: os.Environ(), Timeout: credentialTimeout, MaxOutput: credentialOutput,
	})
	if err != nil {
		return "", err
	}
	value := strings.TrimRight(string(out), "\r\n")
	if value == "" || strings.ContainsAny(value, "\r\n") || !httpguts.ValidHeaderFieldValue(value) {
		return "", errors.New("exec: the program wrote no single line that a header field can carry")
	}
	if *configured.Scheme != "" {
		value = *configured.Scheme + " " + value
	}
	given.value, given.until = value, c.clock.Boot()+configured.Cache
	return value, nil
}

// Always implements proxy.Credentials.
func (c *credentials) Always(connector, scheme, authority string) (name, value string, ok bool, err error) {
	configured, _, _ := c.of(connector, scheme, authority)
	if configured == nil || configured.Use != config.UseAlways {
		return "", "", false, nil
	}
	name, value, err = c.For(connector, scheme, authority)
	return name, value, err == nil, err
}
