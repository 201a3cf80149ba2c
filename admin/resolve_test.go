package admin_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"keep-proxy/admin"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	answer := &wire.Result{Status: 201, Headers: wire.Header{"Content-Type": {"text/plain"}}, Body: wire.Text("made by hand")}
	for _, c := range []struct {
		name   string
		decide wire.Resolve
		policy ledger.Policy
		state  ledger.State
	}{
		{"it happened, with what the script shall get", wire.Resolve{Action: wire.ActionHappened, Result: answer}, ledger.Policy{}, ledger.Applied},
		{"it happened, and nobody knows the answer", wire.Resolve{Action: wire.ActionHappened, NoResult: true}, ledger.Policy{}, ledger.Applied},
		{"it did not happen, by force", wire.Resolve{Action: wire.ActionDidNotHappen, Force: true}, ledger.Policy{}, ledger.Failed},
		{"it did not happen, and the next sending takes a new key",
			wire.Resolve{Action: wire.ActionDidNotHappen, Force: true, NewKey: true},
			ledger.Policy{NativeKey: true, KeyFormat: ledger.KeyUUID}, ledger.Failed},
		{"skip", wire.Resolve{Action: wire.ActionSkip}, ledger.Policy{}, ledger.Skipped},
		{"check again", wire.Resolve{Action: wire.ActionCheckAgain}, ledger.Policy{Reconciler: true}, ledger.NeedsReconcile},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			run := w.open("order-1")
			i := transfer(&run.Run)
			i.policy = c.policy
			m := w.lose(w.claim(i))
			c.decide.Actor, c.decide.Reason, c.decide.Version = "ann", "I looked in the books", m.Version
			got, err := w.client.Resolve(t.Context(), m.ID, c.decide)
			if err != nil {
				t.Fatalf("resolve: %v", err)
			}
			if got.State != string(c.state) || got.Version != m.Version+1 {
				t.Errorf("state %s version %d, want %s %d", got.State, got.Version, c.state, m.Version+1)
			}
			last := got.Events[len(got.Events)-1]
			if last.Actor != "person:ann" || last.What != c.decide.Action || last.Why != "I looked in the books" {
				t.Errorf("history doesn't say who decided what and why: %+v", last)
			}
		})
	}
}

func TestResolveGivesTheScriptThePersonsAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
	}{
		{"a short one", "made by hand"},
		{"an empty one", ""},
		{"bytes that are no text", "\xff\x00\x01"},
		{"one that is too long to travel with the decision", strings.Repeat("x", ledger.InlineBody+1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			_, m := w.unknown("order-1")
			_, err := w.client.Resolve(t.Context(), m.ID, wire.Resolve{
				Action: wire.ActionHappened, Actor: "ann", Reason: "found it", Version: m.Version,
				Result: &wire.Result{Status: 200, Headers: wire.Header{"Etag": {"1"}, "Link": {"a", "b"}}, Body: wire.Text(c.body)},
			})
			if err != nil {
				t.Fatalf("resolve: %v", err)
			}
			got, err := w.client.Mutation(t.Context(), m.ID)
			if err != nil {
				t.Fatalf("show: %v", err)
			}
			if string(got.Result.Body.Content) != c.body || got.Result.Status != 200 || got.Result.Source != "person" {
				t.Errorf("result %d %s with %d bytes, want the person's 200 with %d", got.Result.Status, got.Result.Source, len(got.Result.Body.Content), len(c.body))
			}
			if !slices.Equal(got.Result.Headers["Link"], []string{"a", "b"}) {
				t.Errorf("repeated field: %v", got.Result.Headers)
			}
		})
	}
}

func TestResolveRefusesAStaleVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, m := w.unknown("order-1")
	decide := wire.Resolve{Action: wire.ActionSkip, Actor: "ann", Reason: "too late", Version: m.Version - 1}
	_, err := w.client.Resolve(t.Context(), m.ID, decide)
	p := problemIn(t, err, http.StatusConflict, "version", "indeterminate at version", "read it again")
	if p.Mutation == nil || p.Mutation.ID != m.ID || p.Mutation.State != "indeterminate" {
		t.Errorf("the problem names no record: %+v", p.Mutation)
	}
	if got, _ := w.client.Mutation(t.Context(), m.ID); got.Version != m.Version {
		t.Errorf("a refused decision changed the record to version %d", got.Version)
	}
}

func TestResolveNamesTheOpenActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		decide wire.Resolve
		words  []string
		open   []string
	}{
		{"there is nobody to ask", wire.Resolve{Action: wire.ActionCheckAgain}, []string{"check_again isn't possible while the mutation is indeterminate", "no way to ask", "Open now: happened"},
			[]string{"happened", "did_not_happen", "skip"}},
		{"a sending may still take effect", wire.Resolve{Action: wire.ActionDidNotHappen}, []string{"needs force", "did_not_happen"},
			[]string{"happened", "did_not_happen", "skip"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			_, m := w.unknown("order-1")
			c.decide.Actor, c.decide.Reason, c.decide.Version = "ann", "because", m.Version
			_, err := w.client.Resolve(t.Context(), m.ID, c.decide)
			p := problemIn(t, err, http.StatusConflict, "not-allowed", c.words...)
			var open []string
			for _, a := range p.Actions {
				open = append(open, a.Action)
				if a.Consequence == "" {
					t.Errorf("%s has no consequence", a.Action)
				}
			}
			if !slices.Equal(open, c.open) {
				t.Errorf("open actions %v, want %v", open, c.open)
			}
		})
	}
}

func TestResolveRefusesADecisionThatIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, m := w.unknown("order-1")
	const who = `"actor":"ann","reason":"because","version":1`
	for _, c := range []struct {
		name, body string
		where      []string
		words      []string
	}{
		{"everything is missing", `{}`, []string{"/action", "/reason", "/actor", "/version"}, []string{"give one of check_again", "and 3 more"}},
		{"an unknown action", `{"action":"guess",` + who + `}`, []string{"/action"}, []string{`unknown value "guess"`}},
		{"an action of the proxy", `{"action":"claim",` + who + `}`, []string{"/action"}, []string{`unknown value "claim"`}},
		{"compensating what did not happen", `{"action":"skip","compensate":true,"object":"tr_1",` + who + `}`, []string{"/compensate"}, []string{"happened only"}},
		{"compensating nothing", `{"action":"happened","no_result":true,"compensate":true,` + who + `}`, []string{"/object"}, []string{"missing"}},
		{"an object that is not compensated", `{"action":"happened","no_result":true,"object":"tr_1",` + who + `}`, []string{"/object"}, []string{"compensate only"}},
		{"a misspelt key", `{"action":"skip","resaon":"x",` + who + `}`, []string{"/resaon"}, []string{"unknown name", `did you mean "reason"?`}},
		{"a key inside the result", `{"action":"happened","result":{"status":200,"bdy":""},` + who + `}`, []string{"/result/bdy"}, []string{"unknown name"}},
		{"happened without a result", `{"action":"happened",` + who + `}`, []string{"/result"}, []string{"no_result: true"}},
		{"happened with and without a result", `{"action":"happened","no_result":true,"result":{"status":200},` + who + `}`, []string{"/no_result"}, []string{"give one of them"}},
		{"a result of what did not happen", `{"action":"skip","no_result":true,` + who + `}`, []string{"/no_result"}, []string{"happened only"}},
		{"force where none is needed", `{"action":"skip","force":true,` + who + `}`, []string{"/force"}, []string{"did_not_happen only"}},
		{"a new key for what happened", `{"action":"skip","new_key":true,` + who + `}`, []string{"/new_key"}, []string{"did_not_happen only"}},
		{"an interim status", `{"action":"happened","result":{"status":100},` + who + `}`, []string{"/result/status"}, []string{"200 to 599"}},
		{"a field of the connection", `{"action":"happened","result":{"status":200,"headers":{"transfer-encoding":"chunked"}},` + who + `}`, []string{"/result/headers/transfer-encoding"}, []string{"belongs to the connection"}},
		{"text that is said to be compressed", `{"action":"happened","result":{"status":200,"headers":{"content-encoding":"gzip"},"body":"{}"},` + who + `}`, []string{"/result/headers/content-encoding"}, []string{"plain text", "leave the field out"}},
		{"a field that splits the answer", `{"action":"happened","result":{"status":200,"headers":{"X":"a\r\nSet-Cookie: b"}},` + who + `}`, []string{"/result/headers/X"}, []string{"no field value"}},
		{"a field without a name", `{"action":"happened","result":{"status":200,"headers":{"a b":"c"}},` + who + `}`, []string{"/result/headers"}, []string{"no field name"}},
		{"a field that is a number", `{"action":"happened","result":{"status":200,"headers":{"X":1}},` + who + `}`, []string{"/result/headers"}, []string{"string or a list of strings"}},
		{"a body that is a number", `{"action":"happened","result":{"status":200,"body":1},` + who + `}`, []string{"/result/body"}, []string{"a body is a string"}},
		{"a body without content", `{"action":"happened","result":{"status":200,"body":{"missing":"dropped","sha256":"","size":1}},` + who + `}`, []string{"/result/body"}, []string{"no content"}},
		{"a source of one's own", `{"action":"happened","result":{"status":200,"source":"answer"},` + who + `}`, []string{"/result/source"}, []string{"set by keep-proxy"}},
		{"an actor who writes to terminals", `{"action":"skip","actor":"\u001b[31mann","reason":"because","version":1}`, []string{"/actor"}, []string{"control characters"}},
		{"a reason that says nothing", `{"action":"skip","actor":"ann","reason":" \n","version":1}`, []string{"/reason"}, []string{"say why"}},
		{"a version that is a word", `{"action":"skip","actor":"ann","reason":"because","version":"1"}`, []string{"/version"}, []string{"whole number"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := w.refused(ask{method: http.MethodPost, path: "/v1/mutations/" + m.ID + "/resolve", body: c.body},
				http.StatusBadRequest, "bad-request", append(c.words, c.where[0])...)
			var where []string
			for _, f := range p.Errors {
				where = append(where, f.Where)
			}
			if !slices.Equal(where, c.where) {
				t.Errorf("faults at %v, want %v", where, c.where)
			}
		})
	}
	t.Cleanup(func() {
		if got, err := w.ledger.MutationByID(t.Context(), m.ID); err == nil && got.Version != m.Version {
			t.Errorf("a refused decision changed the record")
		}
	})
}

func TestResolveRecordsWhoseTokenItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, m := w.unknown("order-1")
	got, err := w.as("second-operator-token").Resolve(t.Context(), m.ID, wire.Resolve{
		Action: wire.ActionSkip, Actor: "ann", Reason: "not worth it", Version: m.Version,
	})
	if err != nil {
		t.Fatalf("resolve: %v", err)
	}
	if actor := got.Events[len(got.Events)-1].Actor; actor != "person:ann via night-shift" {
		t.Errorf("actor %q, want the person and the token's holder", actor)
	}
}

func TestResolveWantsTheWholeID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, m := w.unknown("order-1")
	_, err := w.client.Resolve(t.Context(), m.ID[:10], wire.Resolve{Action: wire.ActionSkip, Actor: "ann", Reason: "r", Version: m.Version})
	problemIn(t, err, http.StatusNotFound, "not-found", "the whole id", m.ID)
	if got, err := w.client.Mutation(t.Context(), m.ID); err != nil || got.Version != m.Version {
		t.Errorf("a refused decision changed the record: %+v, %v", got, err)
	}
}

func TestResolveIsNoErrorOnceItIsDurable(t *testing.T) {
	t.Parallel()
	blind := &unreadable{}
	w := newWorld(t, func(c *admin.Config) {
		blind.Ledger = c.Ledger
		c.Ledger = blind
	})
	_, m := w.unknown("order-1")
	got, err := w.client.Resolve(t.Context(), m.ID, wire.Resolve{Action: wire.ActionSkip, Actor: "ann", Reason: "r", Version: m.Version})
	if err != nil || got.State != "skipped" || got.Events != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if !strings.Contains(w.log.String(), "not shown whole") {
		t.Errorf("log: %s", w.log.String())
	}
}

// unreadable is a ledger whose history can't be read.
type unreadable struct{ admin.Ledger }

func (unreadable) Events(context.Context, string, uint64, int) ([]ledger.Event, error) {
	return nil, ledger.ErrDamaged
}
