package reconcilers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"keep-proxy/internal/clock"
	"keep-proxy/upstream"
)

func TestAnswersAreReadWholeOrNotUsed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer   func(w http.ResponseWriter, r *http.Request) bool
		complete bool
		tooLarge bool
		status   int
		body     string
	}{
		"whole": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "0123456789")
			return true
		}, true, false, http.StatusOK, "0123456789"},
		"one byte over the limit": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "0123456789x")
			return true
		}, false, true, http.StatusOK, ""},
		"cut":       {cut, false, false, http.StatusOK, `{"items":[`},
		"no answer": {hangUp, false, false, 0, ""},
		"no body": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusNoContent)
			return true
		}, true, false, http.StatusNoContent, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tc.answer(w, r) }))
			defer server.Close()
			sender := upstream.New(upstream.Config{})
			defer sender.CloseIdle()
			target, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			wire := wire{sender: sender, clock: clock.System()}
			got := wire.send(t.Context(), &upstream.Request{Method: http.MethodGet, URL: target}, 10)
			if got.complete() != tc.complete || got.tooLarge != tc.tooLarge || got.facts.TooLarge != tc.tooLarge {
				t.Errorf("complete %v, too large %v; want %v, %v", got.complete(), got.tooLarge, tc.complete, tc.tooLarge)
			}
			if got.status != tc.status || string(got.body) != tc.body {
				t.Errorf("status %d, body %q; want %d, %q", got.status, got.body, tc.status, tc.body)
			}
			if got.evidence.Ended.BootID == "" {
				t.Error("the dispatch has no end")
			}
		})
	}
}
