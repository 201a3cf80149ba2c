package integration

import (
	"context"
	"net/http"
	"strings"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// life is one thing that a program does, of which each step is a row.
type life struct {
	name string
	// prepare adds what the life needs before anything runs.
	prepare func(*crash)
	// upstream is where the work is done, and identity what its log calls it.
	upstream func(*crash) *upstream
	identity string
	// ask has the work done, as a script or a person does, and reports whether it is.
	ask func(*crash) bool
	// sending is what the trace calls the sending that the row is about.
	sending string
	// before is what a process did that ended in order before the steps are counted.
	before func(*crash)
	// first says that the steps are those of a start, up to listening.
	first bool
	// second says that the steps are those of a process that follows one which was killed
	// while the upstream held what it had sent.
	second bool
	// again says that the first sending is lost without effect, and that the row is about
	// the one that the program makes by itself then.
	again bool
	// accepts says that the upstream answers 202, and books what it books after that.
	accepts bool
	// waits says that the row's own sending waits until settle is over of what came before it.
	waits bool
	// last is a step that comes again and again while the upstream holds what it accepted.
	last string
	// lost says that the first process of two loses the power: what its ledger had in the log alone,
	// the second one folds.
	lost bool
	// rows says which steps are rows of the life, nil: all. Each of these is ended at by SIGKILL and
	// by loss of power wherever the matrix is gone through.
	rows func(step string) bool
	// decides says that a person decides, who looks at what the upstream has done. So it has
	// done it by then: after and late are seen from the end of the first process.
	decides bool
}

// sendings is how often the identity was sent once the row's own sending was.
func (l life) sendings() int {
	if l.again {
		return 2
	}
	return 1
}

// passings is how often a step is a row of its own.
func (l life) passings() int {
	if l.rows != nil {
		return morePassings
	}
	return firstPassings
}

// Upstreams of lives.
func toKeyed(x *crash) *upstream  { return x.keyed }
func toProbed(x *crash) *upstream { return x.probed }
func toMail(x *crash) *upstream   { return x.mail }
func toHooks(x *crash) *upstream  { return x.hooks }
func toBank(x *crash) *upstream   { return x.bank }

// Work of lives.
var (
	short = posting("/transfers", order("M"))
	long  = posting("/transfers", orderOf(map[string]any{"reference": "M", "note": note}))
)

// ofFolding reports whether a step gives Badger something.
func ofFolding(step string) bool { return strings.HasSuffix(step, folding) }

// lives are those of which the rows are made.
func lives() []life {
	const transfer, mutation, redispatch = "transfer:M", "mutation", "redispatch"
	return []life{
		{name: "redispatch", upstream: toProbed, ask: short, identity: transfer, sending: redispatch, again: true},
		{name: "steps", upstream: toMail, ask: posting("/send", message("M")), identity: "mail:M", sending: "commit"},
		{
			name: "undo", prepare: withBank("reversing-bank"), upstream: toBank, ask: undo, identity: "reversal:" + doubledObject,
			sending: redispatch, before: double, waits: true,
		},
		{
			name: "watch", prepare: withBank("watched-bank"), upstream: toBank, ask: short, identity: transfer, sending: mutation,
			accepts: true, last: "upstream.answer_complete of a read",
		},
		{name: "start", upstream: toProbed, ask: short, identity: transfer, sending: mutation, first: true},
		{name: "mutation", upstream: toProbed, ask: long, identity: transfer, sending: mutation},
		{name: "reconcile", upstream: toProbed, ask: short, identity: transfer, sending: mutation, second: true},
		{name: "resend", upstream: toKeyed, ask: short, identity: transfer, sending: mutation, second: true},
		{
			name: "refolded", upstream: toProbed, ask: short, identity: transfer, sending: mutation, second: true, lost: true,
			rows: ofFolding,
		},
		{
			name: "decision", upstream: toHooks, ask: posting("/hook/bounded/M", "hello"), identity: "hook:bounded/M", sending: mutation,
			second: true, decides: true,
		},
	}
}

// posting sends one request in a run of its own, and is done when it is answered with a
// success.
func posting(path, body string) func(*crash) bool {
	return func(x *crash) bool {
		run := x.try("a")
		if run == nil {
			return false
		}
		a := run.try(context.Background(), http.MethodPost, x.upstream().URL()+path, body)
		return a.err == nil && a.status/100 == 2
	}
}

// withBank gives the life a bank that others don't have.
func withBank(connector string) func(*crash) {
	return func(x *crash) { x.bank = x.fake(connector, "bank", `{"native_keys": false}`) }
}

// doubledObject is what the bank booked too much.
const doubledObject = "tr_000002"

// double has a process book twice, and end in order once it owes the undoing of that. What it
// booked is settled by then, as nothing is undone before.
func double(x *crash) {
	x.t.Helper()
	defer func(was string) { x.settings.Settle = was }(x.settings.Settle)
	x.settings.Settle = "120ms" // The connectors say how late the bank commits.
	x.intended = map[string]int{"transfer:M": 2}
	x.bank.armFault(on("transfer:M", twice(2)))
	x.mustSpawnWatched()
	x.open("a").transfer(x.bank, "M").wantApplied(http.StatusCreated)
	x.obligation(doubledObject, wire.StandingOwed)
	booked := time.Now()
	x.poll("what was booked has settled", func() bool { return time.Since(booked) > 120*time.Millisecond })
	if err := x.child.end(); err != nil {
		x.t.Fatalf("the program ended with %v", err)
	}
}

// undo has a person let what is owed be undone, and is done when it is.
func undo(x *crash) bool {
	list, err := x.api.Obligations(context.Background(), client.Filter{All: true})
	if err != nil {
		return false
	}
	for _, o := range list.Items {
		switch o.Standing {
		case wire.StandingDone:
			return true
		case wire.StandingOwed, wire.StandingGivenUp:
			// Without success if the program is gone, or it is under way meanwhile.
			_, _ = x.world.run(o)
		}
	}
	return false
}

// arm tells the upstream what to do.
func (l life) arm(x *crash) {
	hold, book, leave := script.Step{Do: script.Wait, Hold: gateOfMatrix}, script.Step{Do: script.Commit}, script.Step{Do: script.Close}
	var steps []script.Step
	switch commit := x.commit; {
	case l.accepts:
		l.armAccepting(x)
		return
	case commit == commitsBefore && l.second:
		steps = []script.Step{book, hold, leave}
	case commit == commitsNever && l.second:
		steps = []script.Step{hold, leave}
	case commit == commitsNever:
		steps = []script.Step{leave}
	case x.helds():
		steps = []script.Step{hold, book, leave}
	}
	if l.again {
		x.upstream().armFault(on(l.identity, script.Fault{Steps: []script.Step{leave}}))
	}
	if steps != nil {
		x.upstream().armFault(on(l.identity, script.Fault{Steps: steps}))
	}
}

// armAccepting has the upstream answer 202, and say of what it accepted that it isn't over
// until it is.
func (l life) armAccepting(x *crash) {
	u := x.upstream()
	var before, after []script.Step
	switch {
	case x.commit == commitsBefore:
		before = []script.Step{{Do: script.Commit}}
	case x.helds():
		after = []script.Step{{Do: script.Wait, Hold: gateOfMatrix}, {Do: script.Commit}}
		pending := func(script.Subject) bool {
			t, err := u.Tally()
			return err != nil || t.Effects(l.identity) == 0
		}
		u.armFault(script.Fault{
			Match: script.Match{Method: http.MethodGet, When: pending}, Times: script.Always,
			Steps: []script.Step{{Do: script.Status, Status: http.StatusServiceUnavailable}},
		})
	}
	f := accepted(before...)
	// Nothing else is to wait for the end of what comes after the answer.
	f.Steps[len(before)].Header["Connection"] = "close"
	f.Steps = append(f.Steps, after...)
	u.armFault(on(l.identity, f))
}

// held reports whether the upstream has held something.
func held(t oracle.Tally) bool { return len(t.Of(oracle.KindHeld)) > 0 }

// few is how many of its steps make test ends it at, in this way.
func (l life) few(ending string) int {
	if l.rows == nil || ending == torn {
		return 1
	}
	return 2 // It has rows of its own.
}
