package clients

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/server"
)

var chromium = client{
	name: "Chromium", trade: browsing{}, listener: true,
	argv: []string{"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir={fresh}",
		"--proxy-server={proxyhost}:{proxyport}", "--proxy-bypass-list=<-loopback>", "--virtual-time-budget=20000", "--dump-dom", "{url}"},
	needs:   []string{"certutil"},
	version: []string{"chromium", "--version"},
	note:    "`--listener`; see below",
}

// browsing is the trade of a browser: it opens a page, which reads or posts by fetch
// and shows the answer.
type browsing struct{ calling }

func (b browsing) read(t *testing.T, w *world) errand {
	t.Helper()
	return page(t, w, b.calling.read(t, w), "/page", "/balance")
}

func (b browsing) change(t *testing.T, w *world, word string) errand {
	t.Helper()
	return page(t, w, b.calling.change(t, w, word), "/page", "/transfers")
}

func (b browsing) halt(t *testing.T, w *world, word string) errand {
	t.Helper()
	return page(t, w, b.calling.halt(t, w, word), "/hook/read/page", "/hook/plain/"+word)
}

// refused also takes the refusal of the page itself.
func (b browsing) refused(d done) bool { return refusal.MatchString(d.text) }

// page turns a call into the page that makes it, and sees that the browser trusts the
// proxy.
func page(t *testing.T, w *world, e errand, path, target string) errand {
	t.Helper()
	db := filepath.Join(w.home, ".pki", "nssdb")
	if _, err := os.Stat(db); err != nil {
		must(t, os.MkdirAll(db, 0o700))
		w.command(t, "certutil", "-d", "sql:"+db, "-N", "--empty-password")
		w.command(t, "certutil", "-d", "sql:"+db, "-A", "-t", "C,,", "-n", "keep-proxy", "-i", w.ca())
	}
	ask := url.Values{"method": {e.method}, "target": {target}, "body": {e.body}}
	e.url = here(e.on) + path + "?" + ask.Encode()
	return e
}

// paged is an API that also serves a page.
type paged struct {
	server.API

	path string
}

const pageText = `<!doctype html><title>page</title><pre></pre><script>
const ask = new URLSearchParams(location.search), out = document.querySelector("pre");
(async () => {
  const method = ask.get("method");
  const more = method === "GET" ? {} : {body: ask.get("body"), headers: {"Content-Type": "application/json"}};
  try {
    const a = await fetch(ask.get("target"), {method, ...more});
    out.textContent = "\nSTATUS " + a.status + "\n" + [...a.headers].map(([n, v]) => n + ": " + v).join("\n") + "\n" + await a.text();
  } catch (e) { out.textContent = "\nFAILED " + e; }
})();
</script>
`

func (p paged) Identity(r *server.Request) string {
	if r.Method == http.MethodGet {
		return ""
	}
	return p.API.Identity(r)
}

func (p paged) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	if c.Method == http.MethodGet && c.Path == p.path {
		return &server.Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: []byte(pageText)}, nil
	}
	if strings.HasSuffix(c.Path, "/favicon.ico") {
		return &server.Answer{Status: http.StatusNoContent, Header: http.Header{}}, nil
	}
	return p.API.Serve(ctx, c)
}
