package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/cli/child"
	"keep-proxy/cli/managed"
	"keep-proxy/ledger"
)

func TestErrorsBecomeCodesInOnePlace(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, c := range []struct {
		name string
		err  error
		code int
		text string
	}{
		{"none", nil, codeOK, ""},
		{"any other", cause, codeFailed, "cause"},
		{"a wrong command line", usage("no %s", "flag"), codeUsage, "no flag"},
		{"a run that could not be opened", noRun(cause), managed.CodeNoRun, "cause"},
		{"the same inside another", fmt.Errorf("run: %w", noRun(cause)), managed.CodeNoRun, "run: cause"},
		{"a code without a word", quietly(75), 75, ""},
		{"success without a word", quietly(0), codeOK, ""},
		{"a command that isn't there", &child.StartError{Code: child.CodeNotFound, Err: cause}, 127, "cause"},
		{"one that was told", told(noRun(cause)), managed.CodeNoRun, ""},
		{"a first cause with a code among others", errors.Join(quietly(76), cause), 76, "cause"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := exitCode(c.err); got != c.code {
				t.Errorf("code %d, want %d", got, c.code)
			}
			if got := sentence(nil, c.err); got != c.text && c.name != "a first cause with a code among others" {
				t.Errorf("text %q, want %q", got, c.text)
			}
		})
	}
}

func TestWhatBecameOfARunCountsForMoreThanWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	cause := errors.New("close the ledger: no space left")
	unknown := managed.Verdict{Code: managed.CodeUnknown, Run: "r1", Class: "indeterminate", Mutation: "m-1", Retry: managed.RetryYes}
	refused := func(code int) managed.Verdict {
		return managed.Verdict{Code: code, Class: "logic", Reason: cause.Error(), Retry: managed.RetryNo}
	}
	for name, c := range map[string]struct {
		verdict managed.Verdict
		err     error
		code    int
		want    managed.Verdict
	}{
		"an unknown outcome, and an error": {unknown, cause, managed.CodeUnknown, unknown},
		"an unknown outcome alone":         {unknown, nil, codeOK, unknown},
		"the command's own code":           {managed.Verdict{Code: 3, Run: "r1"}, cause, 3, managed.Verdict{Code: 3, Run: "r1"}},
		"a success is none with an error":  {managed.Verdict{Run: "r1"}, cause, codeFailed, refused(codeFailed)},
		"no run was opened":                {managed.Verdict{}, noRun(cause), managed.CodeNoRun, refused(managed.CodeNoRun)},
		"the command could not be started": {managed.Verdict{}, &child.StartError{Code: child.CodeNotFound, Err: cause}, 127, refused(127)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := reported(nil, c.verdict, c.err)
			if got != c.want || exitCode(err) != c.code || !errors.Is(err, c.err) {
				t.Errorf("%+v, code %d of %v; want %+v, code %d", got, exitCode(err), err, c.want, c.code)
			}
		})
	}
}

// A host repairs what is of the class logic, and starts again what is transient.
func TestWhatKeepsARunFromBeingOpenedHasAClass(t *testing.T) {
	t.Parallel()
	refusal := func(name string) error {
		return openError(&client.Problem{Type: wire.ProblemPrefix + name, Detail: "Not now."})
	}
	away := fmt.Errorf("admin API: %w", &url.Error{Op: "Post", URL: "http://127.0.0.1:1/v1/runs", Err: errors.New("connection refused")})
	for name, c := range map[string]struct {
		err   error
		class string
		retry managed.Retry
	}{
		"another run of the item goes on":  {refusal("item-busy"), "transient", managed.RetryYes},
		"an operator keeps work back":      {refusal("draining"), "transient", managed.RetryYes},
		"the ledger takes no records":      {refusal("ledger-unavailable"), "transient", managed.RetryYes},
		"an unknown outcome stops it":      {refusal("blocked"), "indeterminate", managed.RetryYes},
		"a person must decide on the item": {refusal("item-attention"), "logic", managed.RetryNo},
		"another attempt is the item's":    {refusal("attempt"), "logic", managed.RetryNo},
		"the proxy can't be asked":         {openError(away), "transient", managed.RetryYes},
		"another process has the ledger":   {fmt.Errorf("open: %w", ledger.ErrLocked), "transient", managed.RetryYes},
		"the configuration is wrong":       {errors.New("config.yaml:1:1: no map"), "logic", managed.RetryNo},
	} {
		if v := refusedVerdict(nil, noRun(c.err)); v.Class != c.class || v.Retry != c.retry || v.Code != managed.CodeNoRun {
			t.Errorf("%s: %+v, want class %s, retry %s", name, v, c.class, c.retry)
		}
	}
}

func TestARefusedRunSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"item-done": "no run was opened: It is busy. To go on: nothing is left to do for it; keep-proxy items reopen or keep-proxy items new-attempt allows more",
		"item-busy": "no run was opened: It is busy.", // The refusal itself says what to do.
		"blocked":   "no run was opened: It is busy.",
	} {
		p := &client.Problem{Type: wire.ProblemPrefix + name, Detail: "It is busy."}
		if got := openError(p).Error(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := openError(errors.New("refused")).Error(); got != "no run was opened: refused" {
		t.Errorf("%q", got)
	}
}

func TestARefusedDecisionIsToldOnceAndInFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a decision that is not open": {
			&client.Problem{
				Detail:  "did_not_happen isn't possible while the mutation is indeterminate: a sending may still take effect; it needs force. Open now: happened, did_not_happen.",
				Actions: []wire.Action{{Action: wire.ActionHappened}, {Action: wire.ActionDidNotHappen}},
			},
			"--did-not-happen isn't possible while the mutation is indeterminate: a sending may still take effect; it needs --force. Open are: --happened, --did-not-happen",
		},
		"a decision where none is open": {
			&client.Problem{Detail: "skip isn't possible while the mutation is applied: it happened. Nothing is left to decide on it."},
			"--skip isn't possible while the mutation is applied: it happened. Nothing is left to decide on it.",
		},
		"another refusal":       {&client.Problem{Detail: "The record has changed."}, "The record has changed."},
		"what is no refusal":    {errors.New("cut off"), "cut off"},
		"words that say little": {&client.Problem{Detail: "No.", Actions: []wire.Action{{Action: wire.ActionSkip}}}, "No. Open are: --skip"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := withActions(c.err)
			if text := sentence(nil, got); text != c.want || !errors.Is(got, c.err) {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
}

func TestADecisionWhoseAnswerIsLostMayHaveBeenRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a refusal":                     {&client.Problem{Detail: "The record has changed."}, "The record has changed."},
		"a proxy that can't be reached": {fmt.Errorf("admin API: %w", client.ErrNotAsked), "admin API: the admin API was not asked"},
		"a connection that broke":       {errors.New("admin API: EOF"), "admin API: EOF; whether it was recorded isn't known: look at keep-proxy items show i-1 before you decide again"},
	} {
		got := unsaid(c.err, "items show i-1")
		if text := sentence(nil, got); text != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
	if err := unsaid(nil, "items show i-1"); err != nil {
		t.Errorf("of none it makes %v", err)
	}
}

func TestStatusTellsTheStateByItsCode(t *testing.T) {
	t.Parallel()
	stopped := func(state string) []wire.Stopped { return []wire.Stopped{{State: state}} }
	for _, c := range []struct {
		name string
		st   wire.Status
		want int
	}{
		{"nothing is unknown", wire.Status{Healthy: true}, 0},
		{"something is being found out", wire.Status{Healthy: true, Unknown: 1, Stopped: stopped("needs_reconcile")}, 1},
		{"a person is asked", wire.Status{Healthy: true, Escalated: 1}, 2},
		{"an item waits without a question", wire.Status{Healthy: true, ItemsWaiting: 1}, 2},
		{"a person must settle what stops", wire.Status{Healthy: true, Unknown: 1, Stopped: stopped("indeterminate")}, 2},
		{"the ledger takes no records", wire.Status{}, 2},
		{"new mutations are refused", wire.Status{Healthy: true, NotReady: "the disk is nearly full"}, 2},
		{"changed connectors aren't in force", wire.Status{Healthy: true, Reload: &wire.LastReload{Error: "rules.yaml:1:1: no rule"}}, 2},
		{"changed connectors are in force", wire.Status{Healthy: true, Reload: &wire.LastReload{}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := statusCode(&c.st); got != c.want {
				t.Errorf("code %d, want %d", got, c.want)
			}
		})
	}
}

func TestAStatusThatIsHaltedSaysWhatEndsThat(t *testing.T) {
	t.Parallel()
	shown := &page{flags: " --config c"}
	paused := &wire.Mode{Mode: wire.ModePaused, Since: time.Unix(1, 0), Actor: "ada", Reason: "see keep-proxy status"}
	showStatus(shown, &wire.Status{Healthy: true, Mode: paused}, time.Unix(61, 0))
	if want := " by ada: see keep-proxy status; keep-proxy resume --config c ends it\n"; !strings.Contains(shown.String(), want) {
		t.Errorf("shown %q, want %q in it", shown.String(), want)
	}
}

func TestWhatTheAPIRefusesIsSaidInWordsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	run := newRun()
	for name, c := range map[string]struct {
		problem client.Problem
		want    string
	}{
		"what a new run could do is a flag": {
			client.Problem{Detail: "It is running; wait until it ends, or end it: a new run does so with takeover (run r-1)."},
			"no run was opened: It is running; wait until it ends, or end it: a new run does so with --takeover (run r-1).",
		},
		"a place of the API is the command that shows it": {
			client.Problem{Detail: "There is no run \"r-1\" in this ledger; see GET /v1/runs."},
			`no run was opened: There is no run "r-1" in this ledger; see keep-proxy runs list.`,
		},
		"a longer place isn't taken for a shorter one": {
			client.Problem{Detail: "The run can't finish as done; see GET /v1/mutations with the run."},
			"no run was opened: The run can't finish as done; see keep-proxy mutations list --run ID.",
		},
		"faults name flags, and all are told": {
			client.Problem{Detail: "/on_failure: x (and 3 more, see errors)", Errors: []wire.Fault{
				{Where: "/on_failure", What: `unknown value "x"`, How: "give one of abort, return"},
				{Where: "query:ttl", What: "out of bounds"}, {Where: "header:Idempotency-Key", What: "too long"},
				{Where: "/resume", What: "no flag"},
			}},
			`no run was opened: --on-failure: unknown value "x"; give one of abort, return; --ttl: out of bounds; Idempotency-Key: too long; resume: no flag`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sentence(run, noRun(openError(&c.problem))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestARunOfUnknownEndSaysWhereToLook(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		verdict managed.Verdict
		want    string
	}{
		"the proxy stayed away": {managed.Verdict{Code: managed.CodeUnknown, Run: "r1", State: "running"}, "keep-proxy runs show r1; run the same command again"},
		"its mutation is known": {managed.Verdict{Code: managed.CodeUnknown, Run: "r1", State: "paused:reconciliation", Mutation: "m-1"}, "keep-proxy mutations show m-1"},
		"it ran into another's": {managed.Verdict{Code: managed.CodeUnknown, Run: "r1", State: "aborted", Mutation: "m-2"},
			"keep-proxy mutations show m-2; run the same command again later, once keep-proxy status"},
		"it waits for a person":  {managed.Verdict{Code: managed.CodeAttention, Run: "r1", State: "paused:attention", Mutation: "m-3"}, "keep-proxy resolve m-3"},
		"nothing is there of it": {managed.Verdict{Code: managed.CodeUnknown, Reason: "why"}, "stopped: why"},
	} {
		var said strings.Builder
		tell(func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }, tc.verdict, false)
		if !strings.Contains(said.String(), tc.want) {
			t.Errorf("%s: said %q, want %q", name, said.String(), tc.want)
		}
	}
}
