package proxy

import (
	"sync/atomic"
	"time"
)

// Halt is what an operator has told the proxy not to do. Its zero value keeps nothing back.
type Halt struct {
	// Sending says that nothing is sent that is recorded or that no rule declares: what
	// has its answer gets it, and reads go on.
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

// UnderWay counts the requests that are being answered, and those among them that may
// still send a mutation, one that no rule declares included. A count of mutations of 0, taken after Config.Halted began to say
// Sending, means that nothing is being sent for a script, and that nothing will be.
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
