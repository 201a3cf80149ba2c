package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// viaProgram asks a shell script, which finds this text in %s.
func viaProgram(t *testing.T, script, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ask")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("    reconcile:\n      - exec: {command: [/bin/sh, %q], tie: marker, absence_is_proof: true, timeout: 60s%s}\n", file, more)
}

func TestAProgramSaysWhatHappened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		state  ledger.State
		seen   ledger.Seen
		reason string
	}{
		"applied, with its result": {
			`{"seen":"applied","objects":["t1"],"result":{"status":201,"body":{"id":"t1"}}}`, ledger.Applied, ledger.SeenApplied, "says so",
		},
		"duplicate":             {`{"seen":"duplicate","objects":["t1","t2"],"reason":"two"}`, ledger.Applied, ledger.SeenDuplicate, "two"},
		"absent, before settle": {`{"seen":"absent"}`, ledger.NeedsReconcile, ledger.SeenAbsent, "settle was not over"},
		"retry":                 {`{"seen":"retry","reason":"ask later"}`, ledger.NeedsReconcile, ledger.SeenRetry, "ask later"},
		"nothing":               {``, ledger.NeedsReconcile, ledger.SeenRetry, "no JSON object"},
		"no JSON":               {`applied`, ledger.NeedsReconcile, ledger.SeenRetry, "no JSON object"},
		"an unknown word":       {`{"seen":"perhaps"}`, ledger.NeedsReconcile, ledger.SeenRetry, "none of applied"},
		"an unknown member":     {`{"seen":"absent","sure":true}`, ledger.NeedsReconcile, ledger.SeenRetry, "documented form"},
		"two answers":           {`{"seen":"absent"}{"seen":"absent"}`, ledger.NeedsReconcile, ledger.SeenRetry, "documented form"},
		"a member twice":        {`{"seen":"retry","seen":"applied","objects":["t1"]}`, ledger.NeedsReconcile, ledger.SeenRetry, "documented form"},
		"a member of a result twice": {
			`{"seen":"applied","objects":["t1"],"result":{"status":500,"status":201}}`, ledger.NeedsReconcile, ledger.SeenRetry, "documented form",
		},
		"a member in capitals":     {`{"Seen":"applied","objects":["t1"]}`, ledger.NeedsReconcile, ledger.SeenRetry, "documented form"},
		"applied without its id":   {`{"seen":"applied"}`, ledger.NeedsReconcile, ledger.SeenRetry, "needs the id"},
		"a duplicate of one":       {`{"seen":"duplicate","objects":["t1"]}`, ledger.NeedsReconcile, ledger.SeenRetry, "needs the ids"},
		"a duplicate of itself":    {`{"seen":"duplicate","objects":["t1","t1"]}`, ledger.NeedsReconcile, ledger.SeenRetry, "there twice"},
		"an object without an id":  {`{"seen":"applied","objects":[""],"result":{"status":201}}`, ledger.NeedsReconcile, ledger.SeenRetry, "has no id"},
		"absent with an object":    {`{"seen":"absent","objects":["t1"]}`, ledger.NeedsReconcile, ledger.SeenRetry, "neither objects"},
		"absent with a result":     {`{"seen":"absent","result":{"status":200}}`, ledger.NeedsReconcile, ledger.SeenRetry, "nor a result"},
		"applied, reaching nobody": {`{"seen":"applied","objects":["t1"],"unreached":true}`, ledger.NeedsReconcile, ledger.SeenRetry, "retry only"},
		"a result that is a error": {`{"seen":"applied","objects":["t1"],"result":{"status":500}}`, ledger.NeedsReconcile, ledger.SeenRetry, "from 200 to 299"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaProgram(t, "cat <<'END'\n"+c.answer+"\nEND\n", ""))
			m := w.unknown("a")
			w.after(10 * time.Second)
			now := w.wants(m, c.state, "")
			if o := last(now); o.Seen != c.seen || !strings.Contains(o.Reason, c.reason) || o.Strategy != "exec" {
				t.Errorf("%s saw %s (%s)", o.Strategy, o.Seen, o.Reason)
			}
			if c.seen == ledger.SeenApplied && w.resultOf(now) != `{"id":"t1"}` {
				t.Errorf("result %q", w.resultOf(now))
			}
		})
	}
}

func TestAProgramGetsTheRecordAndNoSecret(t *testing.T) {
	t.Setenv("KEEP_TEST_OURS", "ours alone")
	file := filepath.Join(t.TempDir(), "input")
	w := newWorld(t, viaProgram(t, "{ cat; env; } > "+file+"\necho '{\"seen\":\"retry\"}'\n", ""))
	m := w.unknown("a")
	w.after(10 * time.Second)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in programInput
	if err := json.NewDecoder(strings.NewReader(string(text))).Decode(&in); err != nil {
		t.Fatal(err)
	}
	if in.Mutation.Marker != m.Marker || in.Mutation.VendorKey != m.VendorKey || string(in.Mutation.Identity["reference"]) != `"a"` ||
		len(in.Dispatches) != 1 || !strings.Contains(in.Request.Body, `"amount":12`) || in.Account != "acct_1" {
		t.Errorf("it got %+v", in)
	}
	if strings.Contains(string(text), "sk_live") || strings.Contains(string(text), "ours alone") {
		t.Errorf("it got a secret, or our environment:\n%s", text)
	}
}

func TestAProgramGetsWhatStepsGave(t *testing.T) {
	t.Parallel()
	req, refusal := rules.Rebuild(http.MethodPost, "https://api.test/send", http.Header{}, nil)
	if refusal != nil {
		t.Fatal(refusal)
	}
	in := inputOf(&try{mutation: &ledger.Mutation{Outcome: ledger.Outcome{Kept: map[string]string{"draft": `"d1"`}}}, request: req}, ledger.Stamp{})
	text, err := json.Marshal(in)
	if err != nil || !strings.Contains(string(text), `"kept":{"draft":"d1"}`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestAProgramsAbsenceIsBelievedLikeAnyOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProgram(t, `echo '{"seen":"absent"}'`, ""))
	m := w.unknown("a")
	w.believeAbsent()
	w.wants(m, ledger.Failed, "")
}

func TestAProgramsAbsenceIsProofOnlyWhereTheRuleSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(viaProgram(t, `echo '{"seen":"absent"}'`, ""), "absence_is_proof: true", "absence_is_proof: false", 1))
	m := w.unknown("a")
	w.after(6 * time.Minute)
	for n := 0; n < 3 && w.read(m).State == ledger.NeedsReconcile; n++ {
		w.due(m)
	}
	now := w.wants(m, ledger.NeedsReconcile, "")
	if o := last(now); o.Counted || !strings.Contains(o.Reason, "doesn't take absence as proof") {
		t.Errorf("observation %+v", o)
	}
}

// What was asked before settle was over proves nothing, however late the answer comes.
func TestAProgramsAbsenceCountsFromItsBeginning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begun, end := filepath.Join(dir, "begun"), filepath.Join(dir, "end")
	for _, name := range []string{begun, end} {
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, viaProgram(t, "echo > "+begun+"\nread said < "+end+"\necho '{\"seen\":\"absent\"}'\n", ""))
	m := w.unknown("a")
	w.clock.Advance(ledger.DefaultSettle - 10*time.Second)
	tried := make(chan struct{})
	go func() {
		defer close(tried)
		w.r.RunOnce(w.Context())
	}()
	if _, err := os.ReadFile(begun); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(20 * time.Second)
	if err := os.WriteFile(end, []byte("go on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-tried
	now := w.wants(m, ledger.NeedsReconcile, "settle was not over")
	if o := last(now); o.Counted || o.Seen != ledger.SeenAbsent {
		t.Errorf("observation %+v", o)
	}
}

// Nothing is taken back, and nothing taken for the first of several, that is only alike.
func TestAProgramsTieIsTheRules(t *testing.T) {
	t.Parallel()
	for tie, want := range map[string]ledger.State{"marker": ledger.Applied, "vendor_key": ledger.Applied, "unique": ledger.Indeterminate} {
		rule := viaProgram(t, `echo '{"seen":"duplicate","objects":["t1","t2","t3"]}'`, "") + "    compensate: {auto: true, delete: \"/things/{object}\"}\n"
		w := newWorld(t, strings.Replace(rule, "tie: marker", "tie: "+tie, 1))
		m := w.unknown("a")
		w.clock.Advance(10 * time.Second)
		now, err := w.r.read(t.Context(), m.Key)
		if err != nil {
			t.Fatal(err)
		}
		w.r.run(t.Context(), now, false)
		owes := 0
		if want == ledger.Applied {
			owes = 2
		}
		if now := w.wants(m, want, ""); len(now.Obligations) != owes {
			t.Errorf("%s: it owes %d", tie, len(now.Obligations))
		}
	}
}

func TestAProgramThatBreaksIsARetryThatEndsWithAPerson(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, more, reason string
		// counts says that the try uses one up.
		counts bool
	}{
		"its exit code":          {"echo '{\"seen\":\"absent\"}'; exit 1", "", "exit status 1", true},
		"too much output":        {"while :; do echo too much; done", ", output: 1KiB", "more than it may", true},
		"too little time":        {"sleep 1000", ", timeout: 1ms", "in its time", true},
		"the API isn't reached":  {`echo '{"seen":"retry","unreached":true}'`, "", "says so", false},
		"the API was asked once": {`echo '{"seen":"retry"}'`, "", "says so", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := viaProgram(t, c.script, "")
			if strings.Contains(c.more, "timeout") {
				rule = strings.Replace(rule, ", timeout: 60s", c.more, 1)
			} else {
				rule = strings.Replace(rule, ", timeout: 60s", ", timeout: 60s"+c.more, 1)
			}
			w := newWorld(t, rule)
			m := w.unknown("a")
			w.after(6 * time.Minute)
			now := w.wants(m, ledger.NeedsReconcile, c.reason)
			if got := now.Tries == 1; got != c.counts {
				t.Errorf("%d tries are counted", now.Tries)
			}
		})
	}
}

// waited is a context in which time passes while the connector's rate lets its caller wait, for which it is
// asked for its deadline first of all.
type waited struct {
	context.Context
	once *sync.Once
	wait func()
}

func (c waited) Deadline() (time.Time, bool) {
	c.once.Do(c.wait)
	return c.Context.Deadline()
}

// Absences are as far apart as the askings are, however long each of them had to wait for its turn.
func TestAProgramAsksFromWhenItsTurnHasCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProgram(t, `echo '{"seen":"absent"}'`, ""))
	m := w.unknown("a")
	w.clock.Advance(5 * time.Minute)
	w.r.RunOnce(waited{t.Context(), &sync.Once{}, func() { w.clock.Advance(9 * time.Second) }})
	now := w.wants(m, ledger.NeedsReconcile, "")
	if o := last(now); !o.Counted || o.At.Mono != w.now().Mono {
		t.Errorf("counted %v as of %v before it asked", o.Counted, w.now().Mono-o.At.Mono)
	}
	if wait := now.NextTryAt.Sub(w.clock.Now()); wait != ledger.DefaultSpacing {
		t.Errorf("asked again in %v, want one spacing", wait)
	}
}
