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
)

// Bounds of a program that gives a credential.
const (
	credentialTimeout = 30 * time.Second
	credentialOutput  = 64 << 10
)

// credentials resolves what the operator configured for connectors, anew at each
// use, as files rotate; what a program gave is kept for as long as is configured.
type credentials struct {
	mu          sync.RWMutex
	byConnector map[string]*config.Credentials
	given       map[string]*givenCredential
	sources     config.Sources
	clock       clock.Clock
	run         func(ctx context.Context, s program.Spec) ([]byte, error)
}

// givenCredential is what a program gave. One caller at a time asks it.
type givenCredential struct {
	mu    sync.Mutex
	value string
	until time.Duration // on the boot-time clock: a token grows old while the machine sleeps
}

func newCredentials(c config.Connectors, k clock.Clock) *credentials {
	out := &credentials{
		sources: config.Sources{LookupEnv: os.LookupEnv, ReadFile: os.ReadFile},
		clock:   k, run: program.Run,
	}
	out.use(c)
	return out
}

// use puts other settings in force. What programs gave is asked for again.
func (c *credentials) use(s config.Connectors) {
	configured, given := make(map[string]*config.Credentials), make(map[string]*givenCredential)
	for _, s := range s.Settings {
		if s.Credentials != nil {
			configured[s.Connector], given[s.Connector] = s.Credentials, &givenCredential{}
		}
	}
	c.mu.Lock()
	c.byConnector, c.given = configured, given
	c.mu.Unlock()
}

// of is what is configured for a connector now, nil for nothing.
func (c *credentials) of(connector string) (*config.Credentials, *givenCredential) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byConnector[connector], c.given[connector]
}

// For implements reconcilers.Credentials.
func (c *credentials) For(connector string) (header, value string, err error) {
	configured, given := c.of(connector)
	if configured == nil {
		return "", "", nil
	}
	if len(configured.Exec) > 0 {
		value, err = c.exec(configured, given)
	} else {
		value, err = configured.Value.Resolve(c.sources)
	}
	if err != nil {
		return "", "", fmt.Errorf("connectors.settings: credentials of %s: %w", connector, err)
	}
	return configured.Header, value, nil
}

// exec asks the program, or gives what it said a while ago. A failure isn't kept.
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
func (c *credentials) Always(connector string) (name, value string, ok bool, err error) {
	configured, _ := c.of(connector)
	if configured == nil || configured.Use != config.UseAlways {
		return "", "", false, nil
	}
	name, value, err = c.For(connector)
	return name, value, err == nil, err
}
