package proxy

import (
	"fmt"
	"net/http"
	"sync"

	"keep-proxy/ledger"
)

// Refusals are noted in the history one by one, up to a number for each run, refusal
// and place; a script that is refused in a loop then counts on, and every time that
// the count has doubled is noted.
const (
	notedEach   = 64
	notedPlaces = 10_000
)

// noted counts refusals.
type noted struct {
	mu    sync.Mutex
	times map[string]int
}

// next counts one refusal and reports whether it is to be noted, and how many there
// were.
func (n *noted) next(place string) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.times == nil || len(n.times) >= notedPlaces {
		n.times = map[string]int{}
	}
	n.times[place]++
	times := n.times[place]
	return times, times <= notedEach || times&(times-1) == 0
}

// audit appends a refusal to the history, unless it has its event there already. The
// request is named by its method and host alone: what no rule has read may hold
// secrets anywhere else.
func (p *Proxy) audit(x *exchange, r *http.Request, f *refusal) {
	if f.noted {
		return
	}
	asked := r.Method + " " + r.URL.Scheme + "://" + r.URL.Host
	if x.operation != "" {
		asked += " (" + x.connector + "." + x.operation + ")"
	}
	times, note := p.noted.next(x.caller.run + "\x00" + x.caller.workflow + "\x00" + x.caller.item + "\x00" + string(f.problem) + "\x00" + asked)
	if !note {
		return
	}
	e := ledger.Event{
		Actor: ledger.ActorProxy, What: string(f.problem), Why: f.detail, Evidence: asked,
		Run: x.caller.run, Workflow: x.caller.workflow, Item: x.caller.item,
	}
	if times > notedEach {
		e.Evidence = fmt.Sprintf("%s, the %dth such refusal", asked, times)
	}
	if f.mutation != nil {
		e.Mutation = f.mutation.ID
	}
	p.ledger.Refuse(e)
}
