package proxy

import (
	"net/http"
	"slices"
	"testing"

	"keep-proxy/ledger"
)

func TestVia(t *testing.T) {
	t.Parallel()
	seen := make(chan []string, 8)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		seen <- r.Header["Via"]
		rw.Header().Set("Via", "1.0 cache")
		created(rw, r)
	}, func(c *Config) { c.Via = true })
	r := w.open("a")
	answer := r.post("/pay", `{"to":"x"}`, "Via", "1.0 gate")
	wantAnswer(t, answer, 201, `{"id":1}`, false)
	if got := <-seen; !slices.Equal(got, []string{"1.0 gate", "1.1 keep-proxy"}) {
		t.Errorf("a mutation goes out with Via %q", got)
	}
	both := []string{"1.0 cache", "1.1 keep-proxy"}
	if got := answer.header["Via"]; !slices.Equal(got, both) {
		t.Errorf("its answer has Via %q", got)
	}
	// It is no part of the payload, and a stored answer doesn't collect entries.
	for range 2 {
		again := w.open("a", func(o *ledger.OpenRun) { o.Takeover = true })
		replay := again.post("/pay", `{"to":"x"}`)
		wantAnswer(t, replay, 201, `{"id":1}`, true)
		if got := replay.header["Via"]; !slices.Equal(got, both) {
			t.Errorf("a replay has Via %q", got)
		}
	}
	r = w.open("b")
	for name, got := range map[string]got{"a read": r.get("/read"), "without content": r.post("/telemetry", "")} {
		if got.err != nil || !slices.Equal(got.header["Via"], both) {
			t.Errorf("%s has Via %q, %v", name, got.header["Via"], got.err)
		}
		if sent := <-seen; !slices.Equal(sent, []string{"1.1 keep-proxy"}) {
			t.Errorf("%s goes out with Via %q", name, sent)
		}
	}
	refused := r.post("/never", `{}`)
	if got := refused.header["Via"]; len(got) != 0 {
		t.Errorf("a refusal, which nobody forwarded, has Via %q", got)
	}
}

func TestViaIsNotAddedUnasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if got := r.Header["Via"]; len(got) != 0 {
			t.Errorf("sent with Via %q", got)
		}
		created(rw, r)
	})
	if got := w.open("a").post("/pay", `{"to":"x"}`); len(got.header["Via"]) != 0 {
		t.Errorf("answered with Via %q", got.header["Via"])
	}
}

func TestViaNamesTheProtocol(t *testing.T) {
	t.Parallel()
	p := &Proxy{config: Config{Via: true}}
	for received, want := range map[string]string{
		"HTTP/1.0": "1.0 keep-proxy", "HTTP/1.1": "1.1 keep-proxy", "HTTP/2.0": "2 keep-proxy", "": "", "h2": "",
	} {
		if got := p.via(received); got != want {
			t.Errorf("%q gives %q, want %q", received, got, want)
		}
	}
}
