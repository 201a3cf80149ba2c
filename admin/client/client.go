package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"keep-proxy/admin/wire"
)

// Problem is why the API refused a request (RFC 9457).
type Problem = wire.Problem

// Config is where the API is and who asks.
type Config struct {
	// URL is http://host:port, host:port, or unix:/path.
	URL string
	// Token is the bearer token; surrounding white space is ignored. Without
	// one only Healthz and Readyz answer.
	Token string
	// Dialer connects; its zero value will do.
	Dialer net.Dialer
	// Certificate is a PEM file of the server's own certificate. Over https it must show that one,
	// under any name. Empty: one of Roots, for its name.
	Certificate string
	// Roots are trusted over https; nil for the system's.
	Roots *x509.CertPool
}

// Client asks one API. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// Bounds of the client. Nothing bounds a whole answer, since some are streams: callers bound
// them by their context.
const (
	maxAnswer    = 64 << 20
	idleTimeout  = 30 * time.Second
	maxIdleConns = 4
)

// New returns a client, or an error if the address is none.
func New(c Config) (*Client, error) {
	base, socket, err := parseAddress(c.URL)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		MaxIdleConns:       maxIdleConns,
		IdleConnTimeout:    idleTimeout,
		DisableCompression: true,
		ForceAttemptHTTP2:  true,
		TLSClientConfig:    trusting(c),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if socket != "" {
				network, address = "unix", socket
			}
			return c.Dialer.DialContext(ctx, network, address)
		},
	}
	return &Client{
		base:  base,
		token: strings.TrimSpace(c.Token),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// trusting says which servers are the API.
func trusting(c Config) *tls.Config {
	out := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots}
	if c.Certificate == "" {
		return out
	}
	// VerifyConnection asks for the one certificate, on resumed connections too.
	out.InsecureSkipVerify = true
	out.VerifyConnection = func(state tls.ConnectionState) error {
		known, err := firstCertificate(c.Certificate)
		if err != nil {
			return err
		}
		if len(state.PeerCertificates) == 0 || !bytes.Equal(state.PeerCertificates[0].Raw, known) {
			return fmt.Errorf("the server doesn't show the certificate in %s, so it isn't the admin API", c.Certificate)
		}
		return nil
	}
	return out
}

// firstCertificate is the first certificate of a PEM file, DER.
func firstCertificate(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return block.Bytes, nil
		}
	}
	return nil, fmt.Errorf("%s holds no PEM certificate", file)
}

// parseAddress reads an address as people write it.
func parseAddress(address string) (base, socket string, err error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if !strings.HasPrefix(path, "/") {
			return "", "", fmt.Errorf("admin address %q: a socket's path is absolute: unix:/path", address)
		}
		return "http://localhost", path, nil
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return "", "", fmt.Errorf("admin address %q: write http://127.0.0.1:8081 or unix:/path", address)
	}
	return u.Scheme + "://" + u.Host, "", nil
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one request to the API.
type request struct {
	method, path   string
	query          url.Values
	body           any
	idempotencyKey string
	lastEventID    string
}

// ErrNotAsked says that nothing was sent: no connection to the API could be had. Any other
// error that is no Problem leaves open whether the request was carried out.
var ErrNotAsked = errors.New("the admin API was not asked")

// send sends q once and returns the answer if it is a success, else why not.
func (c *Client) send(ctx context.Context, q request) (*http.Response, error) {
	target := c.base + q.path
	if query := q.query.Encode(); query != "" {
		target += "?" + query
	}
	var content io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", q.method, q.path, err)
		}
		// An opaque reader, so that the transport can't send it twice.
		content = io.MultiReader(bytes.NewReader(text))
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, q.method, target, content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.method, q.path, err)
	}
	for name, value := range map[string]string{
		"Accept": "application/json, " + wire.ProblemContentType + ", */*", "Idempotency-Key": q.idempotencyKey, "Last-Event-ID": q.lastEventID,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(r)
	switch {
	case err != nil && !connected.Load():
		return nil, fmt.Errorf("%w: %w", ErrNotAsked, err)
	case err != nil:
		return nil, fmt.Errorf("admin API: %w", err)
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	return nil, problemOf(answer)
}

// problemOf reads a refusal. An answer that isn't the API's own says so.
func problemOf(answer *http.Response) error {
	media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	p := new(Problem)
	if media != wire.ProblemContentType || err != nil || json.Unmarshal(content, p) != nil || p.Type == "" {
		return fmt.Errorf("admin API: status %d with an answer that isn't its own; is this keep-proxy's admin address?", answer.StatusCode)
	}
	return p
}

// call sends q and decodes the answer. Members that this client doesn't know are
// ignored: a newer server may send them.
func call[T any](ctx context.Context, c *Client, q request) (*T, error) {
	answer, err := c.send(ctx, q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("admin API: %s %s: answer cut: %w", q.method, q.path, err)
	}
	if len(content) > maxAnswer {
		return nil, fmt.Errorf("admin API: %s %s: answer over %d bytes", q.method, q.path, maxAnswer)
	}
	v := new(T)
	if err := json.Unmarshal(content, v); err != nil {
		return nil, fmt.Errorf("admin API: %s %s: %w", q.method, q.path, err)
	}
	return v, nil
}

// IsProblem reports whether err is the API's refusal of this name ("version").
func IsProblem(err error, name string) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Name() == name
}
