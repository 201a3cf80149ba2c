package badgerstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// call is how a command of the model is given to the ledger.
type call struct {
	// method is that of ledger.Ledger.
	method string
	do     func(*linearized, *asked) (answered, error)
}

// calls are the commands of the ledger that are drawn, by the model's words for them.
var calls = map[string]call{
	"claim": {"Claim", (*linearized).claim}, "join": {"Join", (*linearized).join},
	"finish": {"EndDispatch", (*linearized).finish}, "park": {"Park", (*linearized).park},
	"commit": {"MarkCommitted", (*linearized).commit}, "prepared": {"Prepared", (*linearized).prepared},
	"observe": {"Observe", (*linearized).observe}, "exhaust": {"Exhaust", (*linearized).exhaust}, "resend": {"Resend", (*linearized).resend},
	"redispatch": {"Redispatch", (*linearized).redispatch}, "call_off": {"CallOffRedispatch", (*linearized).callOff},
	"run_obligation": {"RunObligation", (*linearized).runObligation}, "resolve": {"Resolve", (*linearized).resolve},
	"verified": {"Verified", (*linearized).verified}, "forget": {"Forget", (*linearized).forget},
	"open": {"OpenRun", (*linearized).open}, "finish_run": {"FinishRun", (*linearized).onRun}, "end_run": {"EndRun", (*linearized).onRun},
	"refuse_run": {"RefuseRun", (*linearized).onRun}, "fail_run": {"FailRun", (*linearized).onRun},
	"heartbeat": {"Heartbeat", (*linearized).onRun}, "expire": {"ExpireRuns", nil}, "decide": {"DecideItem", (*linearized).decide},
	"gate": {"Gate", (*linearized).gate}, "gate_token": {"GateToken", (*linearized).gate}, "gate_unmanaged": {"GateUnmanaged", (*linearized).gate},
	"deliver": {"Deliver", (*linearized).notes}, "replayed": {"Replayed", (*linearized).notes},
	"undelivered": {"Undelivered", (*linearized).notes}, "answering": {"Answering", (*linearized).notes}, "refuse": {"Refuse", (*linearized).notes},
	"recover": {"Recover", nil},
	"read":    {"", (*linearized).read}, "look": {"", (*linearized).look},
}

// notDrawn are the other methods of the ledger, with the reason.
var notDrawn = map[string]string{
	"Actions": "it looks at a copy", "LaterOfTarget": "it looks through pages of a list, each of a moment of its own",
	"SentAlike":    "it looks through such pages, too",
	"MutationByID": "it looks through such a page", "Connector": "what it reads never changes", "ID": "it never changes",
	"Ahead":      "the claim after it says whether it is stale",
	"Read":       "what is read is for its caller to say",
	"Unrecorded": "it is in memory, beside the records",
	"Restored":   "it runs alone, before there are callers", "RestoredBehind": "so does it", "MarkGaps": "it runs alone, before there are callers",
	"Refuses": "it is a command over one run, as FinishRun is", "Through": "so is it", "Traffic": "so is it", "Observed": "so is it",
	"ConfirmGaps": "it goes through items one command after another, after a restore",
}

// do carries out a command, and says in the model's words what came of it.
func (l *linearized) do(q asked) answered {
	a, err := calls[q.Do].do(l, &q)
	if err == nil {
		return a
	}
	for _, e := range []struct {
		err  error
		word string
	}{
		{ledger.ErrItemUnresolved, "unsettled"}, {ledger.ErrRunUnfinished, "unfinished"}, {ledger.ErrRunEnded, "ended"},
		{ledger.ErrItemDone, "item-done"}, {ledger.ErrItemAttention, "item-attention"}, {ledger.ErrItemBusy, "busy"},
		{ledger.ErrBlocked, "blocked"}, {ledger.ErrAttempt, "attempt"}, {ledger.ErrVersion, stale}, {ledger.ErrNotAllowed, refused},
		{ledger.ErrNotFound, nothing}, {ledger.ErrInvalid, wrong},
	} {
		if errors.Is(err, e.err) {
			return answered{Got: e.word}
		}
	}
	return answered{Got: err.Error()}
}

// key is the key of a mutation by the model's name; of what is owed, that which was seen.
func (l *linearized) key(q *asked) ledger.Key {
	if k, ok := l.owed.Load(q.Key); ok {
		key, _ := k.(ledger.Key)
		return key
	}
	return ledger.Key(sha256.Sum256([]byte(q.Item + "/" + q.Key)))
}

// run is the id of a run by its token, "" without one.
func (l *linearized) run(token string) (id string, err error) {
	if token == "" {
		return "", nil
	}
	err = l.View(context.Background(), func(v ledger.View) error {
		r, err := v.RunByToken(token)
		if err == nil {
			id = r.ID
		}
		return err
	})
	return id, err
}

// told is the answer about a record and a run.
func told(m *ledger.Mutation, r *ledger.Run, err error) (answered, error) {
	if err != nil {
		return answered{}, err
	}
	a := answered{Got: string(m.State), Version: m.Version}
	if r != nil {
		a.Run = string(r.State)
	}
	return a, nil
}

// ofDispatch is a header field of a result that says whose it is.
const ofDispatch = "Of-Dispatch"

func resultOf(m *ledger.Mutation) string {
	if m == nil || m.Result == nil || len(m.Result.Header[ofDispatch]) == 0 {
		return ""
	}
	return m.Result.Header[ofDispatch][0]
}

func linearResult(q *asked) *ledger.Result {
	return &ledger.Result{Status: 201, Header: ledger.Header{ofDispatch: {q.Dispatch}}}
}

// linearPolicy is what the model's rule is to the ledger.
func linearPolicy(r rules) ledger.Policy {
	p := ledger.Policy{
		Reconciler: r.reconciler, BlockScope: r.scope, OnAbsent: r.onAbsent, MaxDispatches: r.limit, Prepares: r.prepares,
		Settle: time.Nanosecond, Confirmations: ledger.DefaultConfirmations, Spacing: time.Nanosecond,
	}
	if r.native {
		p.NativeKey, p.Resend, p.KeyFormat, p.KeyWindow = true, true, ledger.KeyUUID, 24*time.Hour
	}
	return p
}

func (l *linearized) asClaim(q *asked) (ledger.Claim, error) {
	run, err := l.run(q.Run)
	return ledger.Claim{
		Scope: ledger.Scope{Workflow: q.Item, Item: "i", Attempt: attemptOf(q.Key), Run: run},
		Key:   l.key(q), DispatchID: q.Dispatch, Drift: ledger.DriftAllow, Redelivery: q.is("redelivery"), Hold: q.is("hold"),
		Record: ledger.Mutation{
			Intent: ledger.Intent{Connector: "bank", Operation: "transfer", Target: q.Key, Account: q.Item},
			Payload: ledger.Payload{
				PayloadDigest: q.payload(), SignificantDigest: q.payload(),
				Policy: linearPolicy(rulesOf(q.Item, q.Key)),
			},
		},
	}, err
}

func claimed(out *ledger.Claimed, err error) (answered, error) {
	if err != nil {
		return answered{}, err
	}
	a := answered{Got: string(out.Decision)}
	if out.Decision == ledger.DecideRefused {
		a.Got = out.Problem
	}
	if out.Mutation != nil {
		a.Version = out.Mutation.Version
	}
	if out.Run != nil {
		a.Run = string(out.Run.State)
	}
	if out.Decision == ledger.DecideReplay {
		a.Result = resultOf(out.Mutation)
	}
	return a, nil
}

func (l *linearized) claim(q *asked) (answered, error) {
	c, err := l.asClaim(q)
	if err != nil {
		return answered{}, err
	}
	for {
		a, err := l.Ahead(context.Background(), &c)
		if err != nil {
			return answered{}, err
		}
		if m := a.Compare(&c); m != nil {
			c.Compared = ledger.ComparedWith(m) // No payload covers another.
		}
		if out, err := l.Claim(context.Background(), c); err != nil || out.Decision != ledger.DecideStale {
			return claimed(&out, err)
		}
	}
}

func (l *linearized) join(q *asked) (answered, error) {
	c, err := l.asClaim(q)
	if err != nil {
		return answered{}, err
	}
	out, err := l.Join(context.Background(), c)
	return claimed(&out, err)
}

func (l *linearized) finish(q *asked) (answered, error) {
	f := ledger.EndDispatch{Key: l.key(q), Inline: q.is("pending"), Dispatch: ledger.Dispatch{
		ID: q.Dispatch, Verdict: ledger.VerdictUncertain, Class: verdict.Transient, Reason: "because of a test",
		Wire: ledger.Wire{BytesWritten: 1},
	}}
	for _, v := range []ledger.Verdict{ledger.VerdictApplied, ledger.VerdictCommitted, ledger.VerdictFailed, ledger.VerdictNotSent} {
		if q.is(string(v)) {
			f.Dispatch.Verdict = v
		}
	}
	if q.is("logic") {
		f.Dispatch.Class = verdict.Logic
	}
	if f.Dispatch.Verdict == ledger.VerdictApplied {
		f.Result = linearResult(q)
	}
	out, err := l.EndDispatch(context.Background(), f)
	return told(out.Mutation, out.Run, err)
}

func (l *linearized) park(q *asked) (answered, error) {
	out, err := l.Park(context.Background(), l.key(q), q.Dispatch, l.now().Wall, "it was not found")
	return told(out.Mutation, out.Run, err)
}

func (l *linearized) commit(q *asked) (answered, error) {
	m, err := l.MarkCommitted(context.Background(), l.key(q), q.Dispatch, 201)
	return told(m, nil, err)
}

func (l *linearized) prepared(q *asked) (answered, error) {
	m, err := l.Prepared(context.Background(), l.key(q), q.Dispatch, map[string]string{"step": `"one"`})
	return told(m, nil, err)
}

// linearOwed is what an object is owed.
func linearOwed(object string, auto bool) ledger.Owed {
	return ledger.Owed{Object: object, Auto: auto, Record: ledger.Mutation{
		Intent: ledger.Intent{Target: "undo"},
		Payload: ledger.Payload{
			PayloadDigest: "undo", Policy: linearPolicy(rulesOf("0", "undo")),
			Request: ledger.Request{Method: "DELETE", URL: "https://bank.test/" + object},
		},
	}}
}

func (l *linearized) observe(q *asked) (answered, error) {
	o := ledger.Observe{
		Key: l.key(q), Version: q.Version, AbsenceIsProof: true, Reached: true, Inline: q.is("inline"), NextTryAt: l.now().Wall,
		Observation: ledger.Observation{At: l.now(), Strategy: "probe", Seen: ledger.SeenRetry, Reason: "because of a test"},
	}
	if q.is("early") {
		o.Observation.At.Mono = 1
	}
	switch {
	case q.is("applied"):
		o.Observation.Seen, o.Observation.Objects, o.Result = ledger.SeenApplied, []string{q.object()}, linearResult(q)
	case q.is("absent"):
		o.Observation.Seen = ledger.SeenAbsent
	case q.is("duplicate"):
		o.Observation.Seen, o.Observation.Strong = ledger.SeenDuplicate, q.is("strong")
		o.Observation.Objects, o.Result = []string{q.Dispatch + "-1", q.Dispatch + "-2"}, linearResult(q)
		if q.is("strong") {
			o.Owed = []ledger.Owed{linearOwed(q.Dispatch+"-2", q.is("auto"))}
		}
	}
	out, err := l.Observe(context.Background(), o)
	return told(out.Mutation, out.Run, err)
}

func (l *linearized) exhaust(q *asked) (answered, error) {
	out, err := l.Exhaust(context.Background(), l.key(q), q.Version, "no strategy is left")
	return told(out.Mutation, out.Run, err)
}

func (l *linearized) resend(q *asked) (answered, error) {
	m, _, err := l.Resend(context.Background(), ledger.Resend{Key: l.key(q), Version: q.Version, DispatchID: q.Dispatch, Deadline: time.Second})
	return told(m, nil, err)
}

func (l *linearized) redispatch(q *asked) (answered, error) {
	m, _, err := l.Redispatch(context.Background(), ledger.Redispatch{
		Key: l.key(q), Version: q.Version, DispatchID: q.Dispatch, NextTryAt: l.now().Wall,
	})
	return told(m, nil, err)
}

func (l *linearized) callOff(q *asked) (answered, error) {
	var until time.Time
	if q.is("later") {
		until = l.now().Wall
	}
	m, err := l.CallOffRedispatch(context.Background(), l.key(q), q.Version, until, "its credentials are gone")
	return told(m, nil, err)
}

func (l *linearized) runObligation(q *asked) (answered, error) {
	m, err := l.RunObligation(context.Background(), ledger.RunObligation{Key: l.key(q), Version: q.Version, Actor: "ada", Reason: "it is owed"})
	return told(m, nil, err)
}

func (l *linearized) resolve(q *asked) (answered, error) {
	r := ledger.Resolve{Key: l.key(q), Actor: "ada", Reason: "looked", Version: q.Version}
	for _, on := range ledger.PersonTriggers() {
		if q.is(string(on)) {
			r.Action = on
		}
	}
	r.Force = r.Action == ledger.OnDidNotHappen && q.is("force")
	if r.Action == ledger.OnHappened {
		if r.NoResult = q.is("no_result"); !r.NoResult {
			r.Result = linearResult(q)
		}
		if q.is("compensate") {
			owed := linearOwed(q.Dispatch+"-c", true)
			r.Compensate = &owed
		}
	}
	out, err := l.Resolve(context.Background(), r)
	return told(out.Mutation, out.Run, err)
}

func (l *linearized) verified(q *asked) (answered, error) {
	run, err := l.run(q.Run)
	if err != nil {
		return answered{}, err
	}
	v := ledger.Verified{Key: l.key(q), Run: run, Mode: ledger.VerifyStrict, Said: ledger.SaidNothing, Reason: "because of a test"}
	for _, mode := range []ledger.VerifyMode{ledger.VerifyWarn, ledger.VerifyHuman} {
		if q.is(string(mode)) {
			v.Mode = mode
		}
	}
	for _, said := range []ledger.Said{ledger.SaidAgrees, ledger.SaidDisagrees} {
		if q.is(string(said)) {
			v.Said = said
		}
	}
	replay, m, err := l.Verified(context.Background(), v)
	if err != nil {
		return answered{}, err
	}
	if replay {
		return answered{Got: "replay", Version: m.Version}, nil
	}
	return answered{Got: "no replay", Version: m.Version}, nil
}

func (l *linearized) forget(q *asked) (answered, error) {
	counts, err := l.Forget(context.Background(), []ledger.Key{l.key(q)}, ledger.Retention{Keep: time.Nanosecond, Forget: q.is("whole")})
	switch {
	case counts.Dropped > 0:
		return answered{Got: "dropped"}, err
	case counts.Removed > 0:
		return answered{Got: "removed"}, err
	}
	return answered{Got: "kept"}, err
}
