package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/internal/verdict"
)

// Refused is a request that a run was refused. The run is done only once each of them got through.
type Refused struct {
	// Code is the problem's name, such as "unmatched"; Detail is what the script was told.
	Code   string        `json:"code"`
	Detail string        `json:"detail,omitempty"`
	Class  verdict.Class `json:"class"`
	At     time.Time     `json:"at"`
	// Method, Host and Path are the request's. A query may hold secrets, and isn't kept.
	Method string `json:"method"`
	Host   string `json:"host"`
	Path   string `json:"path,omitempty"`
	// Item is the request's, in a run of many items.
	Item string `json:"item,omitempty"`
	// Asks says that a person was asked.
	Asks bool `json:"asks,omitempty"`
	Exchange
}

// Exchange tells a request from others.
type Exchange struct {
	// Key is the name of the mutation's, where a rule told it.
	Key string `json:"key,omitempty"`
	// Digest is of method, address with query, and content. It is empty where the content was not read whole.
	Digest string `json:"digest,omitempty"`
}

// same reports whether both are one request.
func (e Exchange) same(other Exchange) bool {
	if e.Key != "" && other.Key != "" {
		return e.Key == other.Key
	}
	return e.Digest != "" && e.Digest == other.Digest
}

// refusalKind is what a refusal says of the work. The zero value, of every code that refusalKinds doesn't list, says
// that work is missing.
type refusalKind int

const (
	_ refusalKind = iota
	// refusalAsks: work is missing, and a person is asked.
	refusalAsks
	// refusalDone: an earlier run did the work.
	refusalDone
	// refusalSkipped: a person decided that it isn't done.
	refusalSkipped
)

// refusalKinds is the one place that says which refusals aren't plainly missing work.
var refusalKinds = map[string]refusalKind{
	"item-done":        refusalDone,
	"skipped":          refusalSkipped,
	"ambiguous-record": refusalAsks,
	"drift":            refusalAsks,
	"item-attention":   refusalAsks,
	"no-result":        refusalAsks,
	"payload-mismatch": refusalAsks,
	"verify-failed":    refusalAsks,
}

// CodeRedirected is that of a 307 or 308: the work is done where its Location says.
const CodeRedirected = "redirected"

const (
	// mostRefused is how many refusals a run lists. Beyond them it stays refused.
	mostRefused = 1000
	// ShownRefused is how many of them are shown.
	ShownRefused = 100
	// mostDetail is how long a kept sentence is, in bytes.
	mostDetail = 600
)

// Refuses notes durably that the run was refused a request, before the refusal is answered. What was done before isn't
// noted. Nor is anything of a run that is over.
func (l *Ledger) Refuses(ctx context.Context, run string, f Refused) error {
	if refusalKinds[f.Code] == refusalDone {
		return nil
	}
	if r, _, err := l.Standing(run); err == nil && r.State.Ended() {
		return nil
	}
	_, err := l.onRun(ctx, run, func(c *command, r *Run) error { return c.refuses(r, f) })
	return err
}

func (c *command) refuses(r *Run, f Refused) error {
	f.At, f.Asks = c.now.Wall, refusalKinds[f.Code] == refusalAsks
	f.Detail = strings.ToValidUTF8(f.Detail[:min(len(f.Detail), mostDetail)], "")
	switch {
	case r.tolerates(f) || slices.ContainsFunc(r.Refused, f.repeats):
		return nil
	case len(r.Refused) < mostRefused:
		r.Refused = append(slices.Clip(r.Refused), f)
	case r.RefusedMore:
		return nil
	default:
		r.RefusedMore = true
	}
	if err := c.holdItem(r, f.Item); err != nil {
		return err
	}
	return c.putRun(r)
}

// repeats reports whether f adds nothing to what is noted.
func (f Refused) repeats(known Refused) bool {
	return known.Code == f.Code && known.Item == f.Item && known.Method == f.Method && known.Host == f.Host && known.Path == f.Path &&
		known.Exchange == f.Exchange
}

// tolerates reports whether the run's host declared such refusals as meant.
func (r *Run) tolerates(f Refused) bool {
	name, _, _ := strings.Cut(f.Host, ":")
	return slices.Contains(r.Tolerate, f.Code+":"+f.Host) || slices.Contains(r.Tolerate, f.Code+":"+name)
}

// holdItem makes the item of a refusal the run's, if it is nobody's, so that the run's end reaches it.
func (c *command) holdItem(r *Run, name string) error {
	if name == "" {
		return nil
	}
	item, err := found(c.Item(r.Workflow, name))
	if err == nil && item == nil {
		item, err = c.newItem(r.Workflow, name)
	}
	if err != nil || item.ActiveRun != "" || item.State != ItemOpen && item.State != ItemFailed {
		return err
	}
	item.State, item.Reason, item.Cause = ItemOpen, "", ""
	item.ActiveRun, item.Shared = r.ID, true
	return c.putItem(item)
}

// Through notes, without waiting, that a request of the run got through.
func (l *Ledger) Through(run string, e Exchange) {
	// Most runs were refused nothing, which memory knows.
	if r, _, err := l.Standing(run); err == nil && len(r.Refused) == 0 {
		return
	}
	l.note(func(tx Tx, _ time.Time) error {
		r, err := found(tx.Run(run))
		got := func(f Refused) bool { return f.same(e) }
		if err != nil || r == nil || r.State.Ended() || !slices.ContainsFunc(r.Refused, got) {
			return err
		}
		r.Refused = slices.DeleteFunc(slices.Clone(r.Refused), got)
		r.Version++
		return tx.PutRun(r)
	})
}

// Missing are the refusals that keep the run from being done: all but of what was skipped.
func (r *Run) Missing() []Refused {
	return slices.DeleteFunc(slices.Clone(r.Refused), func(f Refused) bool { return refusalKinds[f.Code] == refusalSkipped })
}

// missingOf are those of one item, or of a request that named none.
func (r *Run) missingOf(item string) []Refused {
	return slices.DeleteFunc(r.Missing(), func(f Refused) bool { return f.Item != item })
}

// skips reports whether a person decided that a part of the item isn't done.
func (r *Run) skips(item string) bool {
	return slices.ContainsFunc(r.Refused, func(f Refused) bool {
		return refusalKinds[f.Code] == refusalSkipped && (f.Item == item || !r.Many())
	})
}

// RefusedError says what keeps a run from being done.
type RefusedError struct {
	// Refused are the requests, at most 100 of them.
	Refused []Refused
	// Why says it in one sentence.
	Why string
}

// Error implements error.
func (e *RefusedError) Error() string { return fmt.Sprintf("%v: %s", ErrRunUnfinished, e.Why) }

// Unwrap makes it an ErrRunUnfinished.
func (e *RefusedError) Unwrap() error { return ErrRunUnfinished }

// lacks reports whether work of the run is missing.
func (r *Run) lacks() bool { return r.RefusedMore || r.unused() || len(r.Missing()) > 0 }

// unrefused refuses to finish a run of which this work is missing.
func (r *Run) unrefused(missing []Refused) error {
	if len(missing) == 0 && !r.RefusedMore && !r.unused() {
		return nil
	}
	return &RefusedError{missing[:min(len(missing), ShownRefused)], r.whyMissing(missing)}
}

// endRefused ends a run of which work is missing: by its first class that isn't transient, else as transient. A run that
// was used for nothing ends as logic.
func (c *command) endRefused(r *Run) error {
	missing, class := r.Missing(), verdict.Transient
	if i := slices.IndexFunc(missing, func(f Refused) bool { return f.Class != verdict.Transient }); i >= 0 {
		class = missing[i].Class
	} else if r.unused() {
		class = verdict.Logic
	}
	return c.end(r, ending{RunAborted, class, r.whyMissing(missing), r.Cause, ActorProxy, !r.Many()})
}

// whyMissing says in one sentence why work of the run is missing.
func (r *Run) whyMissing(missing []Refused) string {
	if r.unused() && len(missing) == 0 {
		return "no request came through the proxy, and the run requires one"
	}
	return whyRefused(missing)
}

// whyRefused says in one sentence what was refused.
func whyRefused(missing []Refused) string {
	if len(missing) == 0 {
		return fmt.Sprintf("more than %d requests were refused", mostRefused)
	}
	f := missing[0]
	text := cmp.Or(strings.TrimSpace(f.Method+" "+f.Host+f.Path), "a request") + " was refused (" + f.Code + ")"
	if more := len(missing) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
