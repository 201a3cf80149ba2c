package reconcilers

import (
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// redirected claims a reference, which is then sent to another path by a redirect.
func (w *world) redirected(reference, path string) *ledger.Mutation {
	w.Helper()
	to := w.api.server.URL + path
	m := w.claim(reference)
	d := *m.Current()
	d.Verdict, d.Class, d.Ended = ledger.VerdictFailed, verdict.Logic, w.now()
	if _, err := w.ledger.EndDispatch(w.Context(), ledger.EndDispatch{Key: m.Key, Dispatch: d, PassedOn: true, MovedTo: to}); err != nil {
		w.Fatal(err)
	}
	w.sentTo = to
	m = w.claim(reference)
	w.sentTo = ""
	return m
}

func TestWhatWasSentToASecondAddressIsSentThereAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule string
		// again are its sendings by itself, gets how often it is read at least.
		again, gets int
	}{
		"by resend":                      {viaResend, 1, 0},
		"by redispatch":                  {viaProbe + "    on_absent: redispatch\n    max_dispatches: 4\n", 1, 2},
		"after a resend by the next one": {viaBoth, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.rule)
			m := w.uncertain(w.redirected("a", "/moved"), false)
			if c.again > 1 {
				w.api.answering(502, nil, "")
			}
			w.restart()
			for n := 0; n < 40 && len(w.api.posts) < c.again; n++ {
				w.after(10 * time.Minute)
			}
			posts, gets, _ := w.api.counts()
			if posts != c.again || gets < c.gets {
				t.Fatalf("%d sendings, %d reads; %s", posts, gets, w.read(m).Reason)
			}
			for _, r := range w.api.posts {
				if r.URL.Path != "/moved" || r.Host != w.api.host() {
					t.Errorf("it was sent to %s%s", r.Host, r.URL.Path)
				}
			}
			for _, r := range w.api.gets {
				if r.URL.Path != "/things" {
					t.Errorf("it was read at %s", r.URL.Path)
				}
			}
		})
	}
}
