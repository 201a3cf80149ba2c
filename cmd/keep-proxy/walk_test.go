package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// asked is an API with open questions, which notes what is decided.
type asked struct {
	open    []wire.Escalation
	decided []wire.Resolve
	refuse  []error
	// known are the mutations that can be looked at.
	known []wire.Mutation
}

func (a *asked) Mutations(context.Context, client.Filter) (*wire.List[wire.Mutation], error) {
	return &wire.List[wire.Mutation]{Items: a.known}, nil
}

func (a *asked) Mutation(_ context.Context, id string) (*wire.Mutation, error) {
	for _, m := range a.known {
		if m.ID == id {
			return &m, nil
		}
	}
	return &wire.Mutation{ID: id}, nil
}

func (a *asked) Escalations(context.Context, client.Filter) (*wire.List[wire.Escalation], error) {
	return &wire.List[wire.Escalation]{Items: a.open}, nil
}

func (a *asked) Resolve(_ context.Context, id string, r wire.Resolve) (*wire.Mutation, error) {
	a.decided = append(a.decided, r)
	if len(a.refuse) > 0 {
		err := a.refuse[0]
		a.refuse = a.refuse[1:]
		if err != nil {
			return nil, err
		}
	}
	return &wire.Mutation{ID: id, State: "applied"}, nil
}

func question(actions ...wire.Action) wire.Escalation {
	return wire.Escalation{Mutation: "m-1", Version: 7, State: "indeterminate", Attempted: "Pay bob", CanVerify: true, Actions: actions}
}

// walkThrough answers with lines.
func walkThrough(t *testing.T, a *asked, lines ...string) string {
	t.Helper()
	var out bytes.Buffer
	w := &walk{api: a, in: bufio.NewScanner(strings.NewReader(strings.Join(lines, "\n"))), out: &out, actor: "ann", flags: " --config c"}
	if err := w.all(t.Context(), client.Filter{}); err != nil && !errors.Is(err, errLeft) && !errors.Is(err, errBegun) {
		t.Fatal(err)
	}
	return out.String()
}

func TestAnAnswerBecomesADecisionOnTheVersionThatWasShown(t *testing.T) {
	t.Parallel()
	happened := wire.Action{Action: wire.ActionHappened, Consequence: "It counts as applied."}
	forced := wire.Action{Action: wire.ActionDidNotHappen, Consequence: "It is sent again.", NeedsForce: true}
	for _, c := range []struct {
		name  string
		lines []string
		want  wire.Resolve
	}{
		{"it happened, without a result", []string{"1", "", "bob has it"}, wire.Resolve{Action: wire.ActionHappened, Reason: "bob has it", NoResult: true}},
		{"it did not happen, by force", []string{"2", "yes", "bob says no"}, wire.Resolve{Action: wire.ActionDidNotHappen, Reason: "bob says no", Force: true}},
		{"after numbers that are none", []string{"three", "9", "-1", "1", "", "bob has it"}, wire.Resolve{Action: wire.ActionHappened, Reason: "bob has it", NoResult: true}},
		{"after force was withheld", []string{"2", "no", "1", "", "bob has it"}, wire.Resolve{Action: wire.ActionHappened, Reason: "bob has it", NoResult: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := &asked{open: []wire.Escalation{question(happened, forced)}}
			walkThrough(t, a, c.lines...)
			c.want.Version, c.want.Actor = 7, "ann"
			if len(a.decided) != 1 || a.decided[0] != c.want {
				t.Errorf("decided %+v, want %+v", a.decided, c.want)
			}
		})
	}
}

func TestOneMutationIsAskedAboutAlone(t *testing.T) {
	t.Parallel()
	skip := []wire.Action{{Action: wire.ActionSkip, Consequence: "It is left out."}}
	for _, c := range []struct {
		name    string
		actions []wire.Action
		reason  string
		version int64
		lines   []string
		want    []wire.Resolve
		show    string
	}{
		{"whether it asks a person or not", skip, "", 0, []string{"1", "why"}, []wire.Resolve{{Action: wire.ActionSkip, Reason: "why", Version: 8}}, "Pay bob"},
		{"with the reason of the flags", skip, "why", 0, []string{"1"}, []wire.Resolve{{Action: wire.ActionSkip, Reason: "why", Version: 8}}, "It is left out."},
		{"at the version that was seen", skip, "why", 6, []string{"1"}, []wire.Resolve{{Action: wire.ActionSkip, Reason: "why", Version: 6}}, "It is left out."},
		{"of which nothing is open", nil, "", 0, nil, nil, "Nothing is to be decided on it."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, out := &asked{}, new(bytes.Buffer)
			w := &walk{api: a, in: bufio.NewScanner(strings.NewReader(strings.Join(c.lines, "\n"))), out: out, actor: "ann", reason: c.reason}
			m := &wire.Mutation{ID: "m-1", Version: 8, State: "needs_reconcile", Target: "Pay bob", Actions: c.actions}
			if err := w.mutation(t.Context(), m, c.version); err != nil {
				t.Fatal(err)
			}
			for i := range c.want {
				c.want[i].Actor = "ann"
			}
			if !slices.Equal(a.decided, c.want) || !strings.Contains(out.String(), c.show) {
				t.Errorf("decided %+v, want %+v; shown %q, want %q in it", a.decided, c.want, out, c.show)
			}
		})
	}
}

func TestAResultIsGivenWithItsType(t *testing.T) {
	t.Parallel()
	a := &asked{open: []wire.Escalation{question(wire.Action{Action: wire.ActionHappened})}}
	walkThrough(t, a, "1", "99", "201", `{"id":1}`, "why")
	if len(a.decided) != 1 || a.decided[0].Result == nil {
		t.Fatalf("decided %+v", a.decided)
	}
	r := a.decided[0].Result
	if r.Status != 201 || string(r.Body.Content) != `{"id":1}` || r.Headers["Content-Type"][0] != "application/json" {
		t.Errorf("result %+v", r)
	}
}

func TestAResultOfWhichOnlyAPartCameIsNotGiven(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", terminalLine)
	for _, c := range []struct {
		name     string
		terminal bool
		lines    []string
		want     string // the body; empty for no decision
	}{
		{"several lines that were pasted", false, []string{"{", `"id": 7,`, `"n": 8`, "}", "", "0"}, ""},
		{"with numbers among them", false, []string{"[", "1,", "2", "]", "", "0"}, ""},
		{"what a terminal gives of a long line", true, []string{`{"id":"` + long, "", "0"}, ""},
		{"what it gives of a long text", true, []string{long, "", "0"}, ""},
		{"the whole of it, said again", false, []string{"{", `{"id":7}`, "why"}, `{"id":7}`},
		{"a long line from elsewhere", false, []string{long, "why"}, long},
		{"a text", true, []string{"it is done", "why"}, "it is done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := &asked{open: []wire.Escalation{question(wire.Action{Action: wire.ActionHappened})}}
			var out bytes.Buffer
			lines := append([]string{"1", "201"}, c.lines...)
			w := &walk{
				api: a, in: bufio.NewScanner(strings.NewReader(strings.Join(lines, "\n"))), out: &out, actor: "ann",
				flags: " --config c.yaml", terminal: c.terminal,
			}
			if err := w.all(t.Context(), client.Filter{}); err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(a.decided) != 0:
				t.Errorf("decided %+v, want nothing", a.decided)
			case c.want == "" && !strings.Contains(out.String(), "keep-proxy resolve --config c.yaml m-1 --happened --result FILE"):
				t.Errorf("shown %q, want the way by a file", out.String())
			case c.want != "" && (len(a.decided) != 1 || string(a.decided[0].Result.Body.Content) != c.want):
				t.Errorf("decided %+v, want the body %q", a.decided, c.want)
			}
		})
	}
}

func TestNothingIsDecidedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines []string
	}{{"zero", []string{"0"}}, {"the input's end", nil}, {"the end before the reason", []string{"1"}}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := &asked{open: []wire.Escalation{question(wire.Action{Action: wire.ActionSkip})}}
			walkThrough(t, a, c.lines...)
			if len(a.decided) != 0 {
				t.Errorf("decided %+v", a.decided)
			}
		})
	}
}

func TestADecisionThatIsNotFinishedIsAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines []string
		want  error
	}{
		{"nothing was typed", nil, errLeft},
		{"no action was chosen", []string{"9"}, errLeft},
		{"an action was chosen", []string{"1"}, errBegun},
		{"force was withheld, and nothing else chosen", []string{"1", "bob has nothing"}, errBegun},
		{"it was left for later after that", []string{"1", "no", "0"}, nil},
		{"it was decided", []string{"1", "yes", "bob has nothing"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := &asked{open: []wire.Escalation{question(wire.Action{Action: wire.ActionDidNotHappen, NeedsForce: true})}}
			w := &walk{api: a, in: bufio.NewScanner(strings.NewReader(strings.Join(c.lines, "\n"))), out: &bytes.Buffer{}, actor: "ann"}
			if err := w.all(t.Context(), client.Filter{}); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

func TestARefusalIsToldAndAskedAgainUnlessTheRecordChanged(t *testing.T) {
	t.Parallel()
	refusal := func(name string) error {
		return &client.Problem{Type: wire.ProblemPrefix + name, Detail: "Not so; see keep-proxy status."}
	}
	for _, c := range []struct {
		name string
		err  error
		want int
	}{{"a reason that is too long", refusal("bad-request"), 2}, {"another version", refusal("version"), 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := &asked{open: []wire.Escalation{question(wire.Action{Action: wire.ActionSkip})}, refuse: []error{c.err}}
			out := walkThrough(t, a, "1", "why", "1", "why")
			if len(a.decided) != c.want || !strings.Contains(out, "Refused: Not so; see keep-proxy status --config c.") {
				t.Errorf("%d decisions, want %d; shown %q", len(a.decided), c.want, out)
			}
		})
	}
}

func TestWhatMostStandsStillForIsAskedFirst(t *testing.T) {
	t.Parallel()
	open := func(id, scope string) wire.Escalation {
		e := wire.Escalation{Mutation: id, Attempted: id}
		if scope != "" {
			e.Blocks = &wire.Blocks{Scope: scope}
		}
		return e
	}
	older := open("m-old", "workflow")
	newer := open("m-flow", "workflow")
	newer.OpenedAt = older.OpenedAt.Add(time.Second)
	text := walkThrough(t, &asked{open: []wire.Escalation{open("m-none", ""), open("m-item", "item"), newer, open("m-one", "mutation"), older}}, "0", "0", "0", "0", "0")
	last := -1
	for _, id := range []string{"m-old", "m-flow", "m-item", "m-one", "m-none"} {
		at := strings.Index(text, "── "+id)
		if at <= last {
			t.Fatalf("%s is out of order:\n%s", id, text)
		}
		last = at
	}
}

func TestAPersonSeesWhatWasSentAndFoundAndAnAnswerToStartFrom(t *testing.T) {
	t.Parallel()
	asking := question(wire.Action{Action: wire.ActionHappened})
	a := &asked{open: []wire.Escalation{asking}, known: []wire.Mutation{
		{ID: "m-0", ResultState: "forgotten"},
		{ID: "m-2", ResultState: "known", Result: &wire.Result{Status: 201, Body: wire.Text(`{"id":"tr_9"}`)}},
		{
			ID: "m-1", Request: wire.Request{Method: "POST", URL: "https://api.test/pay", Body: wire.Text(`{"to":"bob"}`)},
			Observations: []wire.Observation{{Seen: "retry", Objects: []string{"tr_7"}, Evidence: "GET /pay: 200"}},
		},
	}}
	text := walkThrough(t, a, "1", "", "bob has it")
	for _, part := range []string{`{"to":"bob"}`, "tr_7", "GET /pay: 200", "status 201", `{"id":"tr_9"}`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s isn't shown:\n%s", part, text)
		}
	}
}
