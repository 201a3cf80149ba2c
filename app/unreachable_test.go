package app_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A script must not reach the admin API, or the proxy itself, through the proxy, even
// where private addresses are allowed.
func TestOurOwnListenersAreUnreachableThroughTheProxy(t *testing.T) {
	t.Parallel()
	c := settings(t, t.TempDir(), "127.0.0.1:9", "")
	a := start(t, c)
	o, client := openRun(t, a, c, "i")
	_, adminPort, err := net.SplitHostPort(a.AdminAddr())
	if err != nil {
		t.Fatal(err)
	}
	_, proxyPort, err := net.SplitHostPort(a.ProxyAddr())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{
		"127.0.0.1:" + adminPort, "0.0.0.0:" + adminPort,
		"127.0.0.1:" + proxyPort, "0.0.0.0:" + proxyPort,
	} {
		resp, err := client.Get("http://" + target + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		var p struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(text, &p); err != nil || resp.StatusCode != http.StatusForbidden || p.Type != "urn:keep:problem:egress" {
			t.Errorf("GET %s: %d %s", target, resp.StatusCode, text)
		}
		if status, text := throughTunnel(t, o.ProxyURL, target); status != http.StatusForbidden || !strings.Contains(text, "urn:keep:problem:egress") {
			t.Errorf("CONNECT %s: %d %s", target, status, text)
		}
	}
}

// throughTunnel asks in clear inside a tunnel.
func throughTunnel(t *testing.T, proxyURL, target string) (int, string) {
	t.Helper()
	u, err := url.Parse(proxyURL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Authorization: Basic %s\r\n\r\n",
		target, base64.StdEncoding.EncodeToString([]byte(u.User.String())))
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	_, _ = fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target)
	resp, err = http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}
