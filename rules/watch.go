package rules

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Watch follows an answer 202 (RFC 9110 §15.3.3) to the end of what it accepted.
type Watch struct {
	// Every is the time between two looks, Max how long is looked at most.
	Every, Max time.Duration
	// Class is the class of a failure.
	Class Class

	ask    *Probe
	until  *expr
	failed *expr
}

// Watched is what one look showed.
type Watched uint8

// What one look showed. The zero value is pending.
const (
	// WatchPending: it isn't over, or can't be told.
	WatchPending Watched = iota
	// WatchDone: it took effect.
	WatchDone
	// WatchFailed: it did not, and won't.
	WatchFailed
)

// exprs are all expressions of the watch.
func (w *Watch) exprs() []*expr {
	if w == nil {
		return nil
	}
	return slices.DeleteFunc(append(w.ask.exprs(), w.until, w.failed), func(e *expr) bool { return e == nil })
}

// Ask is the request that looks; accepted is the stored answer 202, which it reads as
// response.
func (w *Watch) Ask(env Env, accepted *Response) (*Ask, error) {
	if env.Request == nil || accepted == nil {
		return nil, errors.New("watch: nothing to follow")
	}
	a := &Asking{probe: w.ask, env: env, scope: w.ask.op.scope(env)}
	a.scope.resp = newAnswer(accepted)
	ask, err := a.first()
	if err != nil {
		return nil, fmt.Errorf("watch of %s: %w", w.ask.op.Name, err)
	}
	return ask, nil
}

// Judge says what an answer to Ask shows, and why. Anything but a whole answer as
// expected of which one of the two conditions is true is pending. So is a failure of which one
// page was read, or any end of what takes something away, and an end that rests on the time of the
// claim where that can't be told.
func (w *Watch) Judge(env Env, resp *Response, clocks Clocks) (Watched, string) {
	if resp == nil || !resp.Complete {
		return WatchPending, "there was no whole answer"
	}
	s := w.ask.op.scope(env)
	s.resp = askedAnswer(resp)
	seen, why := w.judge(s, resp)
	if seen == WatchPending {
		return seen, why
	}
	missing := seen == WatchFailed || takesAway(env)
	if _, more, err := nextLink(resp.Header); missing && (more || err != nil) {
		return WatchPending, why + ", but by its Link field the answer goes on, of which one page was read"
	}
	if untold := clocks.untold(); untold != "" && w.restsOnClaim(missing) {
		return WatchPending, why + ", but the rule goes by the time of the claim: " + untold
	}
	return seen, why
}

// restsOnClaim reports whether an end depends on when the mutation was claimed: by how it is judged,
// or, where something is missing by it, by what is asked for.
func (w *Watch) restsOnClaim(missing bool) bool {
	return slices.ContainsFunc([]*expr{w.ask.expect, w.until, w.failed}, (*expr).readsClaim) || missing && w.ask.asksByClaim()
}

// judge asks the conditions about a whole answer, in its scope.
func (w *Watch) judge(s *scope, resp *Response) (Watched, string) {
	if w.ask.expect == nil && resp.Status != http.StatusOK {
		return WatchPending, fmt.Sprintf("it was answered %d instead of 200", resp.Status)
	}
	holds := [3]bool{}
	for i, e := range []*expr{w.ask.expect, w.until, w.failed} {
		if e == nil {
			holds[i] = i == 0
			continue
		}
		var err error
		if holds[i], err = e.test(s); err != nil {
			return WatchPending, "a condition can't be evaluated" + w.ask.op.because(err)
		}
	}
	switch {
	case !holds[0]:
		return WatchPending, fmt.Sprintf("it was answered %d, which is not what the rule expects", resp.Status)
	case holds[1] && holds[2]:
		return WatchPending, "until and failed_when are both true"
	case holds[1]:
		return WatchDone, "until is true: " + w.until.source
	case holds[2]:
		return WatchFailed, "failed_when is true: " + w.failed.source
	}
	return WatchPending, "neither until nor failed_when is true"
}
