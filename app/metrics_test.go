package app

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fakes/testca"
	"keep-proxy/ledger"
	"keep-proxy/proxy"
)

// series are the program's own time series that there are, by name and labels.
func (w *dialled) series() map[string]bool {
	w.t.Helper()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(w.app.AdminURL() + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	all := map[string]bool{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		// The value is behind the last space; labels may hold some.
		if at := strings.LastIndexByte(lines.Text(), ' '); strings.HasPrefix(lines.Text(), "keep_") {
			all[lines.Text()[:at]] = true
		}
	}
	if err := lines.Err(); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// said sends bytes to the proxy and waits for the end of what comes back.
func (w *dialled) said(text string) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.app.ProxyAddr())
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(c, text)
	_, _ = io.Copy(io.Discard, c)
}

// wave sends one request of each kind, in words of its own.
func (w *dialled) wave(n int) {
	w.t.Helper()
	token := fmt.Sprintf("token%d", n)
	_, err := w.app.ledger.OpenRun(w.t.Context(), ledger.OpenRun{
		Workflow: fmt.Sprintf("workflow%d", n), Item: fmt.Sprintf("item%d", n), TTL: time.Hour, TokenSHA256: proxy.TokenDigest(token),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	auth := (&http.Request{Header: http.Header{}})
	auth.SetBasicAuth("run", token)
	known := "Connection: close\r\nProxy-Authorization: " + auth.Header.Get("Authorization") + "\r\n\r\n"
	host, ours := fmt.Sprintf("h%d.test", n), mapped+":"+w.port
	for _, target := range []string{ours, host} {
		for _, method := range []string{"GET", fmt.Sprintf("BREW%d", n)} {
			head := fmt.Sprintf("%s http://%s/p%d?q%d HTTP/1.1\r\nHost: %s\r\nX-%d: %d\r\n", method, target, n, n, target, n, n)
			w.said(head + "Connection: close\r\n\r\n") // by nobody
			w.said(head + known)
		}
	}
	w.said(fmt.Sprintf("GET http://10.0.0.%d/ HTTP/1.1\r\nHost: 10.0.0.%d\r\n", n, n) + known)
	w.said(fmt.Sprintf("CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\nConnection: close\r\n\r\n", host, host))
	w.said(fmt.Sprintf("\x00 garbage %d\r\n\r\n", n))
	w.said(fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: %s\r\nX %d: y\r\n\r\n", host, host, n))
	body := fmt.Sprintf(`{"to":"x%d"}`, n)
	w.said(fmt.Sprintf("POST http://%s/things HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", ours, ours, len(body)) + known + body)
	if status, text := w.post(fmt.Sprintf("w%d.things.test", n)); status != http.StatusForbidden {
		w.t.Errorf("a host of no connector: %d %s", status, text)
	}
}

// What clients make up doesn't become labels: any number of hosts, methods, paths, fields,
// runs and identities leaves the series that a few of them led to.
func TestLabelsAreNotMadeUpByClients(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	_, port := newSite(t, ca, "127.0.0.2:0", "")
	w := newDialled(t, port, ca, nameserver(t, func(name string, _ int) []string {
		if name == mapped {
			return []string{"127.0.0.2"}
		}
		return []string{"10.0.0.1"}
	}))
	w.wave(1)
	first := w.series()
	for _, effect := range []string{"read", "mutation", ""} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(first)), func(s string) bool {
			return strings.HasPrefix(s, fmt.Sprintf("keep_requests_total{effect=%q", effect))
		}) {
			t.Errorf("nothing was counted with the effect %q", effect)
		}
	}
	for n := range 3 {
		w.wave(n + 2)
	}
	for s := range w.series() {
		if !first[s] {
			t.Errorf("more requests made %s", s)
		}
	}
}
