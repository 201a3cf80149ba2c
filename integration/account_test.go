package integration

import (
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// asking is a world with a mail API that is asked whose mailbox it is.
func asking(t *testing.T, edits ...func(*settings)) (*world, *upstream) {
	t.Helper()
	w := prepare(t, edits...)
	mail := w.fake("asking-mail", "mail", "")
	w.start()
	return w, mail
}

// mailAs sends a message with somebody's credentials.
func (s *scriptRun) mailAs(mail *upstream, who, subject string) reply {
	return s.do(http.MethodPost, mail.URL()+"/send", message(subject), field("Authorization", "Bearer "+who))
}

func (u *upstream) reads(path string) int {
	n := 0
	for _, e := range u.tally().Of(oracle.KindReceived) {
		if e.Method == http.MethodGet && strings.HasPrefix(e.Target, path) {
			n++
		}
	}
	return n
}

// TestTheAPIIsAskedWhoseDataItIs: the account is known before the key is derived, once for
// the same credentials, and two accounts are two mutations.
func TestTheAPIIsAskedWhoseDataItIs(t *testing.T) {
	t.Parallel()
	w, mail := asking(t)
	run := w.open("a")
	for _, subject := range []string{"one", "two"} {
		if a := run.mailAs(mail, "ann", subject); a.status != http.StatusOK {
			t.Fatalf("ann got %v", a)
		}
	}
	if n := mail.reads("/me"); n != 1 {
		t.Errorf("the account was asked for %d times, want 1", n)
	}
	// The same message of somebody else is no repeat.
	if a := run.mailAs(mail, "bob", "one"); a.status != http.StatusOK || a.header.Get("Keep-Replayed") != "" {
		t.Errorf("bob got %v", a)
	}
	mail.want("mail:one", 2, 2)
	// Another token of the same account meets its past.
	if a := w.again("a").mailAs(mail, "ann", "one"); a.header.Get("Keep-Replayed") != "true" {
		t.Errorf("a re-run got %v", a)
	}
	mail.want("mail:one", 2, 2)
	for _, m := range w.mutationsOf("a") {
		if m.Account != "ann@mail.test" && m.Account != "bob@mail.test" {
			t.Errorf("%s is of the account %q", m.ID, m.Account)
		}
	}
}

// Without an answer nothing is derived, and nothing is sent; a failure isn't remembered.
func TestNothingIsSentForAnUnknownAccount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		who   string
		steps []script.Step
		words string
	}{
		"the API doesn't know the credentials": {"", nil, "answered 401"},
		"it breaks off":                        {"ann", []script.Step{{Do: script.Close}}, "could not be reached"},
		"it has an error":                      {"ann", []script.Step{{Do: script.Status, Status: http.StatusInternalServerError}}, "answered 500"},
		"it doesn't tell":                      {"ann", []script.Step{{Do: script.Status, Status: http.StatusOK, Body: `{"email":""}`}}, "is no name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, mail := asking(t)
			if c.steps != nil {
				mail.armFault(script.Fault{Match: script.Match{Method: http.MethodGet, Path: "/me"}, Times: 1, Steps: c.steps})
			}
			run := w.open("a")
			run.mailAs(mail, c.who, "one").wantRefusal("account-unknown", http.StatusBadGateway, c.words)
			mail.want("mail:one", 0, 0)
			if all := w.mutationsOf("a"); len(all) != 0 {
				t.Errorf("%d records", len(all))
			}
			if a := run.mailAs(mail, "ann", "one"); a.status != http.StatusOK {
				t.Errorf("the next one got %v", a)
			}
			mail.want("mail:one", 1, 1)
		})
	}
}

// Nothing is looked up with credentials of another account: what isn't there may be
// elsewhere.
func TestALostMessageIsLookedForInItsAccountOnly(t *testing.T) {
	t.Parallel()
	for who, state := range map[string]string{"ann": "applied", "eve": "needs_reconcile"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			w, mail := asking(t, func(s *settings) { s.MailCredentials = "Bearer " + who })
			mail.armFault(onStep("mail:one", 1, script.Step{Do: script.Commit}, script.Step{Do: script.Close}))
			a := w.open("a").mailAs(mail, "ann", "one")
			if found := a.status == http.StatusOK; found != (state == "applied") {
				t.Errorf("the script got %v", a)
			}
			if state != "applied" {
				w.poll("it was tried", func() bool { return len(w.mutation("a").Observations) > 1 })
				if n := mail.reads("/drafts"); n != 0 {
					t.Errorf("%d reads under another account", n)
				}
			}
			if m := w.mutation("a"); m.State != state {
				t.Errorf("it is %s: %s", m.State, m.Reason)
			}
			mail.want("mail:one", 1, 1)
		})
	}
}
