// Package control is the client of a fake upstream's control listener. It is for tests and demos that run the fake as a
// process of its own. The protocol is told in package server.
//
// It never goes through a proxy. The caller's environment often points at the proxy under test, and is ignored.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
)

// maxAnswer bounds what is read of an answer; a long log is far below it.
const maxAnswer = 1 << 30

// Client talks to one control listener. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// New returns a client for the control URL of a fake.
func New(base string) *Client {
	return &Client{base: strings.TrimSuffix(base, "/"), http: &http.Client{Transport: &http.Transport{}}}
}

// Close ends the client's idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Arm arms a fault. A fault with Match.When is refused, for a function can't be
// sent.
func (c *Client) Arm(ctx context.Context, f script.Fault) error {
	if f.Match.When != nil {
		return fmt.Errorf("control: arm %q: match.when only works in process", f.Name)
	}
	body, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("control: arm: %w", err)
	}
	_, err = c.do(ctx, http.MethodPost, "/_control/faults", body)
	return err
}

// ArmNamed arms the fault of this name for the next request that is not a read.
func (c *Client) ArmNamed(ctx context.Context, name string) error {
	f, err := script.Named(name)
	if err != nil {
		return err
	}
	return c.Arm(ctx, f)
}

// Armed returns the faults that still wait for requests.
func (c *Client) Armed(ctx context.Context) ([]script.Fault, error) {
	var out []script.Fault
	return out, c.get(ctx, "/_control/faults", &out)
}

// Disarm removes every fault.
func (c *Client) Disarm(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodDelete, "/_control/faults", nil)
	return err
}

// Release opens a gate.
func (c *Client) Release(ctx context.Context, gate string) error {
	_, err := c.do(ctx, http.MethodPost, "/_control/release/"+url.PathEscape(gate), nil)
	return err
}

// Tally returns the log.
func (c *Client) Tally(ctx context.Context) (oracle.Tally, error) {
	data, err := c.do(ctx, http.MethodGet, "/_control/log", nil)
	if err != nil {
		return oracle.Tally{}, err
	}
	return oracle.Parse(data)
}

// Books returns the API's own books.
func (c *Client) Books(ctx context.Context) (string, error) {
	data, err := c.do(ctx, http.MethodGet, "/_control/books", nil)
	return string(data), err
}

// Adjust changes the settings that v, which is sent as JSON, names.
func (c *Client) Adjust(ctx context.Context, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("control: adjust: %w", err)
	}
	_, err = c.do(ctx, http.MethodPost, "/_control/settings", body)
	return err
}

// Health asks how the fake is.
func (c *Client) Health(ctx context.Context) (server.Health, error) {
	var out server.Health
	return out, c.get(ctx, "/_control/health", &out)
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	data, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("control: %s: %w", path, err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("control: %s %s: %w", method, path, err)
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("control: %s %s: %d: %s", method, path, resp.StatusCode, bytes.TrimSpace(data))
	}
	return data, nil
}
