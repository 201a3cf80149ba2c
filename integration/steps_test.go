package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// message is a script's own request: one message, sent at once.
func message(subject string) string {
	return fmt.Sprintf(`{"to":"bob","subject":%q,"text":"hello"}`, subject)
}

func (s *scriptRun) mail(subject string) reply {
	return s.do(http.MethodPost, s.w.mail.URL()+"/send", message(subject))
}

// onStep is a fault of one of the two requests.
func onStep(identity string, times int, steps ...script.Step) script.Fault {
	return script.Fault{Match: script.Match{Identity: identity}, Times: times, Steps: steps}
}

// TestAMessageIsSentThroughADraft is a sending in two steps, from the script's one
// request to what the API itself counted.
func TestAMessageIsSentThroughADraft(t *testing.T) {
	t.Parallel()
	lose := []script.Step{{Do: script.Commit}, {Do: script.Close}}
	for name, c := range map[string]struct {
		faults []script.Fault
		// drafts and sends are what the API saw in the end.
		drafts, sends int
	}{
		"everything is answered": {nil, 1, 1},
		"the commit's answer is lost": {
			[]script.Fault{onStep("mail:a", 1, lose...)}, 1, 1,
		},
		"the draft's answer is lost": {
			[]script.Fault{onStep("draft:a", 1, lose...)}, 2, 1,
		},
		"the draft never arrives": {
			[]script.Fault{onStep("draft:a", 1, script.Step{Do: script.Close})}, 2, 1,
		},
		"the commit never arrives": {
			[]script.Fault{onStep("mail:a", 1, script.Step{Do: script.Close})}, 2, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, f := range c.faults {
				w.mail.armFault(f)
			}
			a := w.open("a").mail("a")
			for n := 0; a.status != http.StatusOK && n < 3; n++ {
				if err := w.settle(); err != nil {
					t.Fatal(err)
				}
				a = w.again("a").mail("a")
			}
			var sent struct {
				Draft string `json:"draft"`
			}
			if a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &sent) != nil || !strings.HasPrefix(sent.Draft, "a.") {
				t.Fatalf("the script got %v", a)
			}
			w.mail.want("mail:a", 1, c.sends)
			if got := w.mail.tally().Sends("draft:a"); got != c.drafts {
				t.Errorf("%d drafts were asked for, want %d", got, c.drafts)
			}
			if m := w.mutation("a"); m.State != "applied" {
				t.Errorf("it is %s", m.State)
			}
			if err := w.check(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A step that the API refuses is the script's own failure: nothing is unknown, and what
// the API says of it is what the script gets.
func TestAStepThatFailsIsNoUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps  []script.Step
		status int
		body   string
		class  string
	}{
		"refused":           {[]script.Step{{Do: script.Status, Status: http.StatusForbidden, Body: `{"error":"no"}`}}, http.StatusForbidden, `{"error":"no"}`, "permission"},
		"another answer":    {[]script.Step{{Do: script.Status, Status: http.StatusOK, Body: `{}`}}, http.StatusBadGateway, "its answer has no draft", "precondition"},
		"a failure of them": {[]script.Step{{Do: script.Status, Status: http.StatusInternalServerError}}, http.StatusBadGateway, "it was answered 500", "transient"},
		"cut":               {[]script.Step{{Do: script.Commit}, {Do: script.Cut}}, http.StatusBadGateway, "no whole answer", "transient"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.mail.armFault(onStep("draft:a", 1, c.steps...))
			a := w.open("a", onFailureReturn).mail("a")
			if a.status != c.status || !strings.Contains(a.body, c.body) {
				t.Errorf("the script got %v", a)
			}
			if m := w.mutation("a"); m.State != "failed" || m.Class != c.class {
				t.Errorf("it is %s, class %s: %s", m.State, m.Class, m.Reason)
			}
			w.mail.want("mail:a", 0, 0)
		})
	}
}

// What the steps send is what the rule says, with the script's own credentials and
// nothing that is about its own content.
func TestStepsCarryTheScriptsCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open("a").do(http.MethodPost, w.mail.URL()+"/send", message("a"),
		field("Authorization", "Bearer ann"), field("Content-Language", "en"), field("Idempotency-Key", "mine"))
	if a.status != http.StatusOK {
		t.Fatalf("the script got %v", a)
	}
	seen := w.mail.tally().Of(oracle.KindReceived)
	if len(seen) != 2 {
		t.Fatalf("%d requests arrived", len(seen))
	}
	bodies := []string{`{"to":"bob","subject":"a","text":"hello"}`, `{"id":"a.1"}`}
	for i, e := range seen {
		if string(e.Body) != bodies[i] {
			t.Errorf("request %d was %s, want %s", i+1, e.Body, bodies[i])
		}
	}
}
