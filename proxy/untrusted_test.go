package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// A certificate that isn't trusted doesn't pass by itself: nobody is told to try again, whatever was asked.
func TestACertificateThatIsNotTrustedIsAMatterOfPermission(t *testing.T) {
	t.Parallel()
	untrusted := &upstream.Error{Class: upstream.ErrorCertificate, Text: "nobody vouches for it"}
	distrust := func(c *Config) {
		cfg := upstream.Config{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, untrusted }}
		c.Sender, c.Reads, c.Dial = upstream.New(cfg), upstream.NewPassthrough(cfg), cfg.Dial
	}
	for name, c := range map[string]struct {
		rules   string
		change  func(*Config)
		ask     func(w *world) got
		problem problem
	}{
		"a mutation": {testRules, distrust, payOnce("/pay", payX), problemNotSent},
		"a read":     {testRules, distrust, func(w *world) got { return w.open("a").get("/read") }, problemNotSent},
		"a blind tunnel": {testRules, func(c *Config) { distrust(c); c.Passthrough = []string{"127.0.0.1"} }, func(w *world) got {
			_, _, resp := w.open("a").tunnelTo("127.0.0.1:1")
			text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
			return got{resp.StatusCode, resp.Header, string(text), err}
		}, problemNotSent},
		"whose account it is": {askingRules(), func(c *Config) {
			c.Accounts = func(context.Context, *rules.Connector, *rules.Request) (string, error) {
				return "", fmt.Errorf("the API could not be reached: %w", untrusted)
			}
		}, payOnce("/pay", payX), problemAccount},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created, c.change)
			w.use(c.rules)
			g := c.ask(w)
			wantProblem(t, g, string(c.problem), http.StatusBadGateway, `"class":"permission"`)
			if g.header.Get("X-Should-Retry") != "false" {
				t.Error("it is said that it may be tried again")
			}
			w.wantSends("/pay", 0)
		})
	}
}
