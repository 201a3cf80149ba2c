package managed

import (
	"cmp"
	"slices"
	"time"

	"keep-proxy/admin/wire"
)

// Exit codes of a run that did not simply end with its command.
const (
	CodeUnknown   = 75 // stopped on an unknown outcome
	CodeAttention = 76 // a person must look at the item
	CodeAborted   = 77 // aborted, most often on a failed mutation or a refused request; or without required traffic
	CodeNoRun     = 78 // no run could be opened
)

// Verdict is what became of a run and its command.
type Verdict struct {
	// Code is the exit code.
	Code int `json:"code"`
	// Run and State are the run's id and last known state.
	Run   string `json:"run,omitzero"`
	State string `json:"state,omitzero"`
	// Class, Reason and Mutation say why the run did not finish.
	Class    string `json:"class"`
	Reason   string `json:"reason"`
	Mutation string `json:"mutation"`
	// Skipped says that the item was done, so that the command was not started.
	Skipped bool `json:"skipped,omitzero"`
	// Retry says whether the same run makes sense again without a person or a repair. It is empty where only the
	// command's own code tells.
	Retry Retry `json:"retry"`
	// RetryAfter is when trying again makes sense, if that is known.
	RetryAfter time.Time `json:"retry_after,omitzero"`
}

// Retry says whether running the same command again makes sense.
type Retry string

const (
	// RetryYes: any time, or from RetryAfter on. A run that is opened too early is
	// refused, and harms nothing.
	RetryYes Retry = "yes"
	// RetryNo: nothing is left to do, or something has to be repaired or decided first.
	RetryNo Retry = "no"
)

// Run states, as the API names them.
const (
	stateRunning  = "running"
	stateFailing  = "failing"
	stateFinished = "finished"
	stateAborted  = "aborted"
	stateUnknown  = "paused:reconciliation"
	stateAttend   = "paused:attention"
)

// Ended reports whether a run is over. An unknown state is.
func Ended(state string) bool { return state != stateRunning && state != stateFailing }

// openStates are those of a mutation whose end isn't known. Its outcome is unknown, or it was accepted and is
// followed. The run waited for its own sendings: what is left in flight isn't its own.
var openStates = []string{"needs_reconcile", "indeterminate", "in_flight"}

// Judge says with which code a run ends that did not finish:
//
//  1. it caused an unknown outcome: CodeUnknown;
//  2. it waits for a person: CodeAttention;
//  3. it was refused because of a stop, or has a mutation whose end isn't known: CodeUnknown;
//  4. it was refused a request about which a person was asked: CodeAttention;
//  5. it was aborted: CodeAborted.
//
// The mutation that the run names, or that keeps it from finishing, is cause. It is nil for none, or one that can't
// be read. A state that isn't known is CodeUnknown, which asks for most care. An unknown end without a class is
// indeterminate.
func Judge(run *wire.Run, cause *wire.Mutation) Verdict {
	v := Verdict{Code: CodeUnknown, Run: run.ID, State: run.State, Class: run.Class, Reason: run.Reason, Mutation: run.Cause}
	if cause != nil {
		v.Mutation, v.RetryAfter = cmp.Or(v.Mutation, cause.ID), cause.RetryAfter
		if v.RetryAfter.IsZero() {
			v.RetryAfter = cause.NextTryAt
		}
	}
	switch {
	case run.State == stateUnknown:
	case run.State == stateAttend:
		v.Code = CodeAttention
	case run.State == stateAborted && stopped(run, cause):
	case run.State == stateAborted && slices.ContainsFunc(run.Refused, func(f wire.Refused) bool { return f.Asks }):
		v.Code = CodeAttention
	case run.State == stateAborted || run.State == stateFailing:
		v.Code = CodeAborted
	case run.State == stateRunning && cause != nil && !slices.Contains(openStates, cause.State):
		v.Code, v.Class, v.Reason = CodeAborted, cmp.Or(v.Class, cause.Class), cmp.Or(v.Reason, cause.Reason)
	}
	if v.Code == CodeUnknown {
		v.Class = cmp.Or(v.Class, "indeterminate")
	}
	v.Retry = retrySense(v.Code, v.Class)
	return v
}

// retrySense follows from the code, and for a run that was aborted from the class. What is transient passes,
// everything else has to be repaired.
func retrySense(code int, class string) Retry {
	if code == CodeUnknown || code == CodeAborted && class == "transient" {
		return RetryYes
	}
	return RetryNo
}

// stopped reports whether an aborted run was refused because of another mutation's unknown outcome. That may have
// been settled since. Such a run is of class transient, and names a mutation that did not fail.
func stopped(run *wire.Run, cause *wire.Mutation) bool {
	return run.Class == "transient" && cause != nil && cause.State != "failed"
}
