package proxy

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// comparing is testRules with more said about the payload of pay.
func comparing(payload string) string {
	return strings.Replace(testRules, "payload: {minor: [json.note]}", "payload:\n      "+payload, 1)
}

// payThen pays in one run with the first rules, and again in another with the second.
func (w *world) payThen(rules, body, again, path string) (*run, got) {
	w.t.Helper()
	first := w.open("a")
	if answer := first.post(path, body); answer.status != 201 {
		w.t.Fatalf("first: %d %s", answer.status, answer.body)
	}
	if _, err := w.ledger.EndRun(w.t.Context(), first.id, verdict.Transient, "test", "test"); err != nil {
		w.t.Fatal(err)
	}
	w.use(rules)
	second := w.open("a")
	return second, second.post(path, again)
}

func TestPayloadsAreComparedByMeaning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, then, now, body, again string
		replayed                     bool
		path                         string
	}{
		{"written differently", "normalise: {json.text: markdown}", "", `{"to":"x","text":"* a\n* b"}`, `{"to":"x","text":"- a\n- b\n"}`, true, ""},
		{"compare says that it is minor", "compare: \"json.n <= stored.json.n ? 'minor' : 'significant'\"", "", `{"to":"x","n":2}`, `{"to":"x","n":1}`, true, ""},
		{"compare says that it counts", "compare: \"json.n <= stored.json.n ? 'minor' : 'significant'\"", "", `{"to":"x","n":2}`, `{"to":"x","n":3}`, false, ""},
		{"the rule was corrected since", "{}", "ignore: [json.at]", `{"to":"x","at":1}`, `{"to":"x","at":2}`, true, ""},
		{"the rule was made stricter since, same payload", "ignore: [json.at]", "{}", `{"to":"x","at":1}`, `{"to":"x","at":1}`, true, ""},
		{"the rule of then says that it is covered", "ignore: [json.at]", "{}", `{"to":"x","at":1}`, `{"to":"x","at":2}`, true, ""},
		{"neither does", "minor: [json.note]", "normalise: {json.note: case}", `{"to":"x","n":1}`, `{"to":"x","n":2}`, false, ""},
		{"a secret differs, and the rule changed", "{}", "minor: [json.note]", `{"to":"x","password":"1"}`, `{"to":"x","password":"2"}`, false, "/hooks/t"},
		{"the same secret, and the rule changed", "{}", "minor: [json.note]", `{"to":"x","password":"1"}`, `{"to":"x","password":"1"}`, true, "/hooks/t"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			w.use(comparing(c.then))
			path, now := "/pay", comparing(c.then)
			if c.now != "" {
				now = comparing(c.now)
			}
			if c.path != "" {
				path = c.path
			}
			_, answer := w.payThen(now, c.body, c.again, path)
			w.wantSends(path, 1)
			if c.replayed {
				wantAnswer(t, answer, 201, `{"id":1}`, true)
				return
			}
			wantProblem(t, answer, "payload-mismatch", 422, "another payload")
		})
	}
}

func TestTheDifferenceIsToldAndKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	_, answer := w.payThen(testRules, `{"to":"x","amount":1,"note":"one"}`, `{"to":"x","amount":2,"note":"two"}`, "/pay")
	wantProblem(t, answer, "payload-mismatch", 422, "json.amount was 1, is 2.")
	var told struct {
		Diff []ledger.Change `json:"diff"`
	}
	if err := json.Unmarshal([]byte(answer.body), &told); err != nil {
		t.Fatal(err)
	}
	want := []ledger.Change{
		{Place: "json.amount", Kind: "changed", Stored: "1", Asked: "2", Weight: "significant"},
		{Place: "json.note", Kind: "changed", Stored: `"one"`, Asked: `"two"`, Weight: "minor"},
	}
	m := w.mutation("a")
	if m.Diff == nil || len(told.Diff) != 2 || told.Diff[0] != want[0] || told.Diff[1] != want[1] || m.Diff.Changes[0] != want[0] || m.Diff.Payload != m.Disputed {
		t.Errorf("told %+v, kept %+v", told.Diff, m.Diff)
	}
	// What hosts are shown of it names places alone.
	for what, text := range map[string]string{"run": w.lastRun("a").Reason, "question": m.Escalation.Why} {
		if !strings.Contains(text, "json.amount differs.") || strings.Contains(text, "is 2") {
			t.Errorf("the %s says %q", what, text)
		}
	}
	events, err := w.ledger.Events(t.Context(), m.ID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events, func(e ledger.Event) bool {
		return e.What == "payload_mismatch" && e.Evidence == "json.amount was 1, is 2"
	}) {
		t.Errorf("events %+v", events)
	}
}

func TestASecretThatDiffersIsNotShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	_, answer := w.payThen(testRules, `{"to":"x","password":"s3cret-1"}`, `{"to":"x","password":"s3cret-2"}`, "/hooks/t0ken")
	wantProblem(t, answer, "payload-mismatch", 422, "keeps secret")
	if strings.Contains(answer.body, "s3cret") || strings.Contains(answer.body, "t0ken") {
		t.Errorf("a secret was told: %s", answer.body)
	}
}

// A stored body that can't be read covers nothing, and what was sent is sent once.
func TestAStoredRequestThatIsGoneCoversNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	out := ComparePayload(t.Context(), gone{}, w.pinned, w.rules.Load().Connectors()[0].Operations[0], nil,
		&ledger.Mutation{
			Payload: ledger.Payload{PayloadDigest: "p", Request: ledger.Request{Body: ledger.Body{SHA256: "x", Size: 1}}},
			Intent:  ledger.Intent{ConnectorHash: w.rules.Load().Connectors()[0].Hash},
		})
	if out.Covers || out.Payload != "p" || !strings.Contains(out.Diff.Why, "can't be compared") {
		t.Errorf("%+v", out)
	}
}

type gone struct{}

func (gone) Body(context.Context, ledger.Body) (io.ReadCloser, error) {
	return nil, ledger.ErrBodyDropped
}
