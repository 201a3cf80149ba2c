package reconcilers

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

func TestConfigurationMustBeComplete(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("no error")
	}
}

func TestMetricsCountEachTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.unknown("a")
	w.api.answering(http.StatusBadRequest, nil, "")
	w.due(m)
	w.api.script(nil)
	w.api.commit("a", m.Marker, "")
	w.due(m)
	want := []string{"things thing.create resend failed", "things thing.create probe applied"}
	if !slices.Equal(w.tally.tried, want) {
		t.Errorf("counted %q, want %q", w.tally.tried, want)
	}
	if w.tally.most != 1 || w.tally.working != 0 {
		t.Errorf("%d tries at once, want 1; %d under way at the end", w.tally.most, w.tally.working)
	}
}

// What a try is made from may be gone or not fit any more; that is never an
// observation, and in the end a person is asked.
func TestTryThatCannotBeMadeIsRetry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		operation string
		rule      func(rule string) string
		wrap      func(l Ledger) Ledger
		creds     fixed
		want      string
		content   func([]byte) ([]byte, error)
	}{
		"the rule file is gone": {
			viaProbe, nil, nil, fixed{}, "the rule file of version 1: " + ledger.ErrNotFound.Error(),
			func([]byte) ([]byte, error) { return nil, ledger.ErrNotFound },
		},
		"the rule file does not load any more": {
			viaProbe, nil, nil, fixed{}, "the rule file of version 1: ",
			func([]byte) ([]byte, error) { return []byte("apiVersion: keep/v9"), nil },
		},
		"the stored body was dropped": {viaProbe, nil, func(l Ledger) Ledger {
			return broken{Ledger: l, body: ledger.ErrBodyDropped}
		}, fixed{}, "the stored body", nil},
		"the credential is no field value": {viaProbe, nil, nil, fixed{header: "Authorization", value: "a\nb"}, "no valid header field", nil},
		"the account can't be told": {viaProbe, func(rule string) string {
			return strings.Replace(rule, "header[?'x-account'].orValue('')", "sha256(header['authorization'])", 1)
		}, nil, fixed{}, "can't be told", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.operation)
			if tc.rule != nil {
				w.rule, w.scripted = tc.rule(w.rule), http.Header{"Authorization": {"Bearer of the script"}}
			}
			w.wrap, w.creds, w.content = tc.wrap, tc.creds, tc.content
			w.start()
			m := w.unknown("a")
			w.due(m)
			w.wants(m, ledger.NeedsReconcile, tc.want)
			for n := 0; n < 400 && w.read(m).State == ledger.NeedsReconcile; n++ {
				w.due(m)
			}
			w.wants(m, ledger.Indeterminate, "")
			if posts, gets, _ := w.api.counts(); posts+gets != 0 {
				t.Errorf("%d requests were sent", posts+gets)
			}
		})
	}
}

// broken is a Ledger in which something can't be read.
type broken struct {
	Ledger
	body     error
	evidence error
}

func (b broken) Body(ctx context.Context, body ledger.Body) (io.ReadCloser, error) {
	if b.body != nil {
		return nil, b.body
	}
	return b.Ledger.Body(ctx, body)
}

func (b broken) View(ctx context.Context, fn func(ledger.View) error) error {
	return b.Ledger.View(ctx, func(v ledger.View) error { return fn(brokenView{v, b.evidence}) })
}

type brokenView struct {
	ledger.View
	evidence error
}

func (v brokenView) EvidenceOf(connector, account, object string) (ledger.Key, error) {
	if v.evidence != nil {
		return ledger.Key{}, v.evidence
	}
	return v.View.EvidenceOf(connector, account, object)
}

func TestEvidenceThatCannotBeLookedUpIsRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.wrap = func(l Ledger) Ledger { return broken{Ledger: l, evidence: ledger.ErrDamaged} }
	w.start()
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.due(m)
	w.wants(m, ledger.NeedsReconcile, "whose evidence")
}

// racing loses the race for an object to another mutation.
type racing struct{ Ledger }

func (r racing) Observe(ctx context.Context, o ledger.Observe) (ledger.Moved, error) {
	if o.Observation.Seen != ledger.SeenRetry {
		return ledger.Moved{}, ledger.ErrEvidence
	}
	return r.Ledger.Observe(ctx, o)
}

func TestObjectLostToAnotherMutationMeanwhileIsRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.wrap = func(l Ledger) Ledger { return racing{l} }
	w.start()
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.due(m)
	w.wants(m, ledger.NeedsReconcile, "evidence for another mutation")
}

func TestSettingsOfOperationsThatAPinnedVersionLacksArePassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.user = []rules.Settings{
		{Connector: "things", Overrides: map[string]rules.Override{"thing.rename": {BlockScope: "item"}}},
		{Connector: "other", Hosts: []string{"elsewhere.test"}},
	}
	w.start()
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.due(m)
	w.wants(m, ledger.Applied, "")
}

func TestLongResultIsWrittenFirst(t *testing.T) {
	t.Parallel()
	for name, operation := range map[string]string{"found by a probe": viaProbe, "answered to a resend": viaResend} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, operation)
			m := w.unknown("a")
			made := w.api.commit("a", m.Marker, m.VendorKey)
			w.api.script(func(http.ResponseWriter, *http.Request) bool {
				w.api.mu.Lock()
				defer w.api.mu.Unlock()
				w.api.things[0].Note = strings.Repeat("x", ledger.InlineBody)
				return false
			})
			w.due(m)
			now := w.wants(m, ledger.Applied, "")
			if body := w.resultOf(now); !strings.Contains(body, made.ID) || len(body) <= ledger.InlineBody {
				t.Errorf("result of %d bytes; want the whole answer", len(body))
			}
		})
	}
}

func TestAnswerOfAResendOverTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "    max_body: 1KiB\n"+viaResend)
	m := w.unknown("a")
	w.api.answering(http.StatusCreated, nil, strings.Repeat("x", 2<<10))
	w.due(m)
	if now := w.wants(m, ledger.Applied, ""); now.ResultState != ledger.ResultTooLarge {
		t.Errorf("result %s, want too_large", now.ResultState)
	}
}

func TestRuleJudgesTheAnswerOfAResend(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		outcome string
		status  int
		want    ledger.Verdict
	}{
		"applied":                    {"{when: response.status == 409, then: applied}", http.StatusConflict, ledger.VerdictApplied},
		"failed":                     {"{when: response.status == 409, then: failed, class: logic}", http.StatusConflict, ledger.VerdictFailed},
		"uncertain":                  {"{when: response.status == 400, then: uncertain}", http.StatusBadRequest, ledger.VerdictUncertain},
		"a broken condition":         {"{when: response.json.x == 1, then: failed, class: logic}", http.StatusBadRequest, ledger.VerdictUncertain},
		"no opinion":                 {"{when: response.status == 409, then: applied}", http.StatusBadRequest, ledger.VerdictFailed},
		"otherwise closes the table": {"{otherwise: uncertain}", http.StatusBadRequest, ledger.VerdictUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "    outcome: ["+tc.outcome+"]\n"+viaResend)
			m := w.unknown("a")
			w.api.answering(tc.status, nil, "no JSON")
			w.due(m)
			if d := w.read(m).Current(); d.Verdict != tc.want {
				t.Errorf("verdict %s (%s), want %s", d.Verdict, d.Reason, tc.want)
			}
		})
	}
}

// What an answer lacks may be what would say that it took effect: a rule that takes its absence for a failure is not
// asked about an answer that was cut, or whose coding nobody knows.
func TestAnAnswerThatCannotBeReadWholeIsNotJudgedByWhatItLacks(t *testing.T) {
	t.Parallel()
	const outcome = "    outcome: [{when: \"!response.text.contains('booked')\", then: failed, class: logic}]\n"
	coded := func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.Header().Set("Content-Encoding", "br")
		rw.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(rw, "squeezed")
		return true
	}
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request) bool{"cut": cut, "coded": coded} {
		for way, operation := range map[string]string{"resent": viaResend, "sent again": viaRedispatch} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, outcome+operation)
				m := w.unknown("a")
				w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
					return r.Method == http.MethodPost && answer(rw, r)
				})
				if way == "resent" {
					w.due(m)
				} else {
					w.believeAbsent()
					w.after(0)
				}
				now := w.read(m)
				if posts, _, _ := w.api.counts(); posts != 1 || now.State != ledger.NeedsReconcile || now.Current().Verdict != ledger.VerdictUncertain {
					t.Errorf("%d sendings, %s, verdict %s (%s)", posts, now.State, now.Current().Verdict, now.Current().Reason)
				}
			})
		}
	}
}

func TestPanicDuringAResendLeavesItAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	m := w.unknown("a")
	w.r.wire.sender, w.r.dispatcher.Sender = panicking{}, panicking{}
	w.due(m)
	now := w.wants(m, ledger.NeedsReconcile, "a panic of type")
	if d := now.Current(); !d.Resend || d.Verdict != ledger.VerdictUncertain || d.Ended.BootID == "" {
		t.Errorf("dispatch %+v, want an uncertain end", d)
	}
}

// bodiless is a Ledger that keeps no long content.
type bodiless struct{ Ledger }

func (bodiless) WriteBody(context.Context, io.Reader) (ledger.Body, error) {
	return ledger.Body{}, ledger.ErrUnavailable
}

func (bodiless) Spool() (ledger.Spool, error) { return nil, ledger.ErrUnavailable }

// What took effect did so whether or not its answer can be kept, and what was accepted is unknown without the answer
// that says where to look.
func TestAnAnswerToAResendThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operation string
		status    int
		verdict   ledger.Verdict
	}{
		"a success": {viaBoth, http.StatusCreated, ledger.VerdictCommitted},
		"accepted":  {strings.Replace(viaWatch, "- none:", "- resend: {}\n      - none:", 1), http.StatusAccepted, ledger.VerdictUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.operation)
			w.wrap = func(l Ledger) Ledger { return bodiless{l} }
			w.start()
			m := w.unknown("a")
			w.api.answering(c.status, nil, `{"id":"`+strings.Repeat("j", ledger.InlineBody)+`"}`)
			w.after(10 * time.Second)
			now := w.wants(m, ledger.NeedsReconcile, "")
			if d := now.Current(); now.Committed != (c.verdict == ledger.VerdictCommitted) || now.Watching || now.Result != nil || d.Verdict != c.verdict {
				t.Errorf("committed %v, watching %v, result %+v, verdict %s", now.Committed, now.Watching, now.Result, d.Verdict)
			}
		})
	}
}

// falling is a Ledger that breaks when it is told something.
type falling struct{ Ledger }

func (falling) Observe(context.Context, ledger.Observe) (ledger.Moved, error) { panic("broken") }

func TestPanicOfTheLedgerEndsTheTryAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.wrap = func(l Ledger) Ledger { return falling{l} }
	w.start()
	m := w.unknown("a")
	if c := w.after(10 * time.Second); c.Errors != 1 {
		t.Errorf("counts %+v, want one error", c)
	}
	if now := w.read(m); now.Version != m.Version {
		t.Error("the record moved")
	}
	if !w.r.busy.claim(m.Key) {
		t.Error("the record is still taken")
	}
}

func TestStopLetsAResendFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	m := w.unknown("a")
	w.clock.Advance(time.Minute)
	arrived, release := make(chan struct{}), make(chan struct{})
	w.api.script(func(http.ResponseWriter, *http.Request) bool {
		close(arrived)
		<-release
		return false
	})
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.r.Run(ctx)
	}()
	<-arrived
	stop()
	select {
	case <-stopped:
		t.Error("the runner stopped in the middle of a resend")
	default:
	}
	close(release)
	<-stopped
	w.wants(m, ledger.Applied, "")
}

func TestStopCutsAProbeShortAndRecordsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.clock.Advance(time.Minute)
	arrived, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	w.api.script(func(http.ResponseWriter, *http.Request) bool {
		close(arrived)
		<-release
		return false
	})
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.r.Run(ctx)
	}()
	<-arrived
	stop()
	<-stopped
	if now := w.read(m); now.Version != m.Version {
		t.Errorf("the record moved: %+v", last(now))
	}
}

// counting is a Sender that must not be asked twice for one resend.
type counting struct {
	dispatch.Sender
	sends int
}

func (c *counting) Send(ctx context.Context, r *upstream.Request) *upstream.Answer {
	c.sends++
	return c.Sender.Send(ctx, r)
}

func TestResendThatCannotBeRecordedIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaResend)
	m := w.unknown("a")
	sender := &counting{Sender: w.r.wire.sender}
	w.r.wire.sender, w.r.dispatcher.Sender = sender, sender
	w.store.FailAfter()
	if c := w.after(10 * time.Second); c.Errors != 1 {
		t.Errorf("counts %+v, want one error", c)
	}
	if sender.sends != 0 {
		t.Errorf("%d sends", sender.sends)
	}
	w.restart()
	if now := w.wants(m, ledger.NeedsReconcile, ""); now.ResendTries != 1 {
		t.Errorf("%d resends recorded; the ambiguous one was kept", now.ResendTries)
	}
}

// The credentials of now may make the stored request one of another operation, whose answers
// and listings say nothing of what was sent.
func TestAStoredRequestThatIsAnotherOperationsNowIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	const drafts = `  - name: thing.draft
    match: {method: POST, path: /things, when: "header[?'authorization'].orValue('') != ''"}
    effect: mutation
    describe: "Draft {json.reference}"
    before: [thing.create]
    identity: {reference: json.reference}
    marker: {json: keep_id}
    manual_check: "Is there a draft?"
`
	w := newWorld(t, viaProbe+drafts+viaProbe)
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.due(m)
	w.wants(m, ledger.NeedsReconcile, "not one of this operation")
	if posts, gets, _ := w.api.counts(); posts+gets != 0 {
		t.Errorf("%d sends and %d reads by the rule of another operation", posts, gets)
	}
}

// What panics each time comes to its end all the same, and a person is asked.
func TestWhatAlwaysPanicsEndsWithAPerson(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rule  string
		begin func(w *world) *ledger.Mutation
		want  ledger.State
	}{
		"a look at what was accepted": {viaWatch, func(w *world) *ledger.Mutation { return w.accepted(w.claim("a")) }, ledger.Indeterminate},
		"an undo": {viaNone + "    compensate: {delete: \"/things/{object}\"}\n", func(w *world) *ledger.Mutation {
			return w.owed(w.unknown("a"), "t1")
		}, ledger.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.rule)
			m := tc.begin(w)
			w.r.wire.sender, w.r.dispatcher.Sender = panicking{}, panicking{}
			w.r.pinned.load = func(context.Context, string) (*rules.Connector, error) { panic("broken") }
			for n := 0; n < 400 && !w.read(m).Escalated(); n++ {
				w.after(10 * time.Minute)
			}
			if now := w.wants(m, tc.want, ""); !now.Escalated() {
				t.Error("nobody was asked")
			}
		})
	}
}
