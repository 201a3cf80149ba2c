package proxy

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// standing asks the gate about a caller.
func (p *Proxy) standing(c caller) ledger.Admission {
	if over, is := p.unrecorded.Over(c.run); is {
		run := ledger.Run{State: ledger.RunPausedReconciliation, Class: verdict.Indeterminate, Reason: over.Why}
		return ledger.Admission{Problem: string(problemRunAborted), Run: run}
	}
	var a ledger.Admission
	if c.managed() {
		a = p.ledger.GateToken(c.token, c.item)
	} else {
		a = p.ledger.GateUnmanaged(c.workflow, c.item)
		a.Run = ledger.Run{State: ledger.RunRunning, Workflow: c.workflow, Item: c.item}
	}
	return a
}

// readsOnly reports whether the caller's run may make no mutation.
func (p *Proxy) readsOnly(c caller) bool {
	return c.managed() && p.standing(c).Run.Mutations == ledger.MutationsNone
}

// gate refuses a caller whose scope is stopped, reads included. It waits for an
// inline try that is under way, and then for the configured hold. A managed run
// that is refused because of a stop is over.
func (p *Proxy) gate(x *exchange) *refusal { return p.gateAfter(x, patience{}) }

// gateAfter is gate for a request that has waited.
func (p *Proxy) gateAfter(x *exchange, until patience) *refusal {
	if p.draining.Load() {
		return draining()
	}
	if h := p.halted(); h.Everything {
		return h.refusal()
	}
	for {
		a := p.standing(x.caller)
		if a.Open {
			return nil
		}
		if a.Problem != string(problemBlocked) {
			return overRefusal(a)
		}
		again := p.await(x.client, []ledger.Blocker{a.Blocker}, &until)
		if p.draining.Load() {
			// Shutting down ends the waiting, and not the run.
			return draining()
		}
		if again {
			continue
		}
		if x.caller.managed() {
			if _, err := p.ledger.RefuseRun(context.WithoutCancel(x.client), x.caller.run, "refused because of a stop", a.Blocker.ID); err != nil {
				return ledgerRefusal(err)
			}
		}
		return p.blockedRefusal(x.caller, []ledger.Blocker{a.Blocker}, "")
	}
}

func draining() *refusal {
	f := refuse(problemDraining, "keep-proxy is shutting down; nothing was sent.")
	f.retryAfter = drainRetryAfter
	return f
}

// overRefusal answers a run that has ended, and a gate that can't be asked.
func overRefusal(a ledger.Admission) *refusal {
	switch a.Problem {
	case string(problemRunAborted):
		f := refuse(problemRunAborted,
			"This run is over ("+string(a.Run.State)+"): "+strings.TrimSuffix(a.Run.Reason, ".")+". Nothing was sent; what it does from now on has no effect.")
		f.class = a.Run.Class
		return f
	case "credentials":
		return refuse(problemRunAborted, "This run is no longer known, so it is over; nothing was sent.")
	}
	if a.Err != nil {
		return ledgerRefusal(a.Err)
	}
	return refuse(problemInternal, "The gate gave no answer that is known; nothing was sent.")
}

// blockedRefusal says what stops the scope and who can lift it.
func (p *Proxy) blockedRefusal(c caller, blockers []ledger.Blocker, detail string) *refusal {
	f := refuse(problemBlocked, detail)
	if len(blockers) == 0 {
		return f
	}
	b := blockers[0]
	f.mutation = &ledger.Mutation{Intent: ledger.Intent{ID: b.ID}, Outcome: ledger.Outcome{State: b.State}}
	// What is known about the blocker is a help, not a condition of refusing.
	if m, err := p.ledger.MutationByID(p.ctx, b.ID); err == nil {
		f.mutation = m
	}
	f.detail = "Stopped by " + b.ID
	if f.mutation.Target != "" {
		f.detail += " (" + f.mutation.Target + ")"
	}
	f.detail += " of item " + quoted(b.Item) + ", whose outcome is unknown. Nothing was sent. "
	if b.State == ledger.Indeterminate {
		f.detail += "A person must decide: keep-proxy resolve " + b.ID + "."
		f.actions = []string{"keep-proxy resolve " + b.ID}
	} else {
		f.detail += "keep-proxy is asking the API what happened; "
		if c.managed() {
			f.detail += "start a new run later."
		} else {
			f.detail += "ask again later."
		}
	}
	if c.managed() {
		f.detail += " This run is over."
	}
	return f
}

// currentAttempt is the attempt at which an unmanaged scope works: its item's.
func (p *Proxy) currentAttempt(ctx context.Context, workflow, item string) (int, error) {
	attempt := 1
	err := p.ledger.View(ctx, func(v ledger.View) error {
		i, err := v.Item(workflow, item)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err == nil {
			attempt = max(attempt, i.Attempt)
		}
		return err
	})
	return attempt, err
}

// quoted puts a name into a sentence.
func quoted(s string) string { return strconv.Quote(s) }

// Halt is what an operator has told the proxy not to do. Its zero value keeps nothing back.
type Halt struct {
	// Sending says that nothing is sent that is recorded or that no rule declares. Stored answers are
	// still given, and reads go on.
	Sending bool
	// Everything says that no new request is taken at all.
	Everything bool
	// Why is the operator's reason.
	Why string
}

// haltRetryAfter is what a refusal asks for while an operator keeps work back.
const haltRetryAfter = 30 * time.Second

// under counts what is going on.
type under struct{ requests, mutations atomic.Int64 }

// UnderWay counts the requests that are being answered, and those that may still send a mutation. A
// mutation that no rule declares counts, too. If Config.Halted already says Sending and mutations
// is 0, nothing is being sent for a script, and nothing will be.
func (p *Proxy) UnderWay() (requests, mutations int) {
	return int(p.under.requests.Load()), int(p.under.mutations.Load())
}

// halted is what an operator keeps back now.
func (p *Proxy) halted() Halt {
	if p.config.Halted == nil {
		return Halt{}
	}
	return p.config.Halted()
}

// refusal says what is kept back and why.
func (h Halt) refusal() *refusal {
	text := "An operator has paused keep-proxy, so that no mutation is sent"
	if h.Everything {
		text = "An operator is draining keep-proxy, so that it takes no requests"
	}
	if h.Why != "" {
		text += " (" + h.Why + ")"
	}
	f := refuse(problemDraining, text+". Nothing was sent; try again later.")
	f.retryAfter = haltRetryAfter
	return f
}
