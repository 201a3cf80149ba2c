package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
)

// lockedBuffer is written by handlers and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Neither the log nor the ledger gets what a rule calls secret, what usually holds
// credentials, or a run's token; the upstream gets all but the token.
func TestSecretsAreKeptNowhere(t *testing.T) {
	t.Parallel()
	var seen http.Header
	var body string
	log := &lockedBuffer{}
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		seen, body = r.Header.Clone(), string(text)
		rw.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(rw, `{"id":1,"key":"answer-secret"}`)
	}, func(c *Config) { c.Log = zerolog.New(log).Level(zerolog.DebugLevel) })
	r := w.open("a")
	g := r.post("/hooks/path-secret", `{"to":"x","password":"body-secret"}`, "Authorization", "Bearer header-secret", "Cookie", "sid=cookie-secret")
	wantAnswer(t, g, 201, `{"id":1,"key":"answer-secret"}`, false)
	if seen.Get("Authorization") != "Bearer header-secret" || seen.Get("Cookie") != "sid=cookie-secret" || !strings.Contains(body, "body-secret") {
		t.Errorf("the upstream got %v %s", seen, body)
	}
	w.wantSends("/hooks/path-secret", 1)
	w.waitDelivered(r.id, "a")
	m := w.mutation("a")
	kept, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	all := string(kept)
	for _, b := range []ledger.Body{m.Request.Body, m.Result.Body} {
		stored, err := w.proxy.bodyOf(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := stored.Whole()
		all += string(text)
	}
	events, err := w.ledger.Events(t.Context(), m.ID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	history, err := json.Marshal(events)
	if err != nil {
		t.Fatal(err)
	}
	all += string(history)
	for deadline := time.Now().Add(waitLimit); !strings.Contains(log.String(), m.ID) && time.Now().Before(deadline); {
		runtime.Gosched() // The line is written once the client has its answer.
	}
	w.proxy.Close()
	for place, text := range map[string]string{"the ledger": all, "the log": log.String()} {
		if !strings.Contains(text, m.ID) {
			t.Errorf("%s doesn't tell of the mutation: %s", place, text)
		}
		for _, secret := range []string{"path-secret", "body-secret", "header-secret", "cookie-secret", "answer-secret", r.token} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %s: %s", place, secret, text)
			}
		}
	}
}
