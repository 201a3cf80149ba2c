package integration

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"keep-proxy/admin/wire"
)

// hookKey is the signing key of the tests, as Standard Webhooks writes it.
const hookKey = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver is somebody who is called by a webhook, and answers 503 until it is up.
type receiver struct {
	t  *testing.T
	up atomic.Bool

	mu sync.Mutex
	// tried and taken are in the order in which they came.
	tried, taken []string
}

// ServeHTTP implements http.Handler. It checks the signature as the standard says: over
// id, time and body, by the secret's decoded bytes.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	key, _ := base64.StdEncoding.DecodeString(hookKey)
	mac := hmac.New(sha256.New, key)
	id := q.Header.Get("Webhook-Id")
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, q.Header.Get("Webhook-Timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil || q.Header.Get("Webhook-Signature") != want {
		r.t.Errorf("signature %q, want %q (%v)", q.Header.Get("Webhook-Signature"), want, err)
	}
	var m struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	message := m.Type + " " + id
	r.tried = append(r.tried, message)
	if !r.up.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.taken = append(r.taken, message)
}

// seen are the messages that came and those that were taken, each as TYPE ID.
func (r *receiver) seen() (tried, taken []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tried), slices.Clone(r.taken)
}

// TestAWebhookThatIsDownIsCalledAgainAfterARestart is the whole way: what a person is asked
// is queued, status shows that nobody could be told, and the next process tells it under
// the same id.
func TestAWebhookThatIsDownIsCalledAgainAfterARestart(t *testing.T) {
	t.Parallel()
	r := &receiver{t: t}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	w := newWorld(t, func(set *settings) { set.Webhook = s.URL + "/s3cret" })
	w.hooks.arm("commit-close")
	w.open("a").deliver("plain/x").wantRefusal("unknown-outcome", 424, "a person must decide")
	var standing wire.Destination
	w.poll("status says that nobody could be told", func() bool {
		status, err := w.api.Status(t.Context())
		if err != nil || len(status.Destinations) != 1 {
			t.Fatalf("%+v, %v", status, err)
		}
		standing = status.Destinations[0]
		return standing.Tries > 0
	})
	if standing.Name != "pager" || standing.Waiting != 1 || standing.Since.IsZero() || standing.Error == "" {
		t.Errorf("status: %+v", standing)
	}
	tried, taken := r.seen()
	if len(taken) != 0 || len(tried) == 0 || !strings.HasPrefix(tried[0], "escalation.opened ") {
		t.Fatalf("tried %v, taken %v", tried, taken)
	}
	w.stop()
	r.up.Store(true)
	w.start()
	w.resolve(w.mutation("a"), wire.Resolve{Action: wire.ActionSkip})
	w.poll("both messages were taken", func() bool { _, taken = r.seen(); return len(taken) == 2 })
	if taken[0] != tried[0] || !strings.HasPrefix(taken[1], "escalation.closed ") {
		t.Errorf("taken %v after %v was tried", taken, tried)
	}
	w.poll("nothing waits", func() bool {
		status, err := w.api.Status(t.Context())
		return err == nil && status.Destinations[0].Waiting == 0 && status.Destinations[0].Error == ""
	})
}
