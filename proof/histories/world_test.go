package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// world is how an API is other than its rules assume, or just as they do.
type world struct {
	says string
	// replace changes the rules: old and new texts in turn.
	replace []string
	// fate changes what becomes of a request that isn't simply good.
	fate func(r *rand.Rand, f *fate)
	// forgets is after what time a vendor key is forgotten, 0 for never.
	forgets time.Duration
	// clock is how far the API's clock is ahead, stamps how far its times of creation are
	// beyond that.
	clock, stamps time.Duration
	// loses makes listings lack what is there, now and then, and shifts makes what others
	// had vanish between two pages.
	loses, shifts bool
	// alike puts something of somebody else's of the same content into each listing, from
	// a minute before.
	alike bool
	// believed says that success is answered before it takes effect.
	believed bool
	// caches is how old an answer of a cache to a read may be, and silent that its Age is left out.
	caches time.Duration
	silent bool
}

// age is how old the answer to one more read is, in whole seconds.
func (w *world) age(p *plan, reads int, at time.Duration) time.Duration {
	if w == nil || w.caches == 0 {
		return 0
	}
	r := drawn(p.seed, "cache", reads)
	return min(upTo(r, w.caches), at).Truncate(time.Second)
}

// aged is the field that tells an answer's age (RFC 9111 §5.1).
func (w *world) aged(age time.Duration) string {
	if age == 0 || w.silent {
		return ""
	}
	return fmt.Sprintf("Age: %d\r\n", int(age.Seconds()))
}

// created is the time of creation that the API gives.
func (w *world) created(now time.Time) time.Time {
	if w == nil {
		return now
	}
	return now.Add(w.clock + w.stamps)
}

// hasForgotten reports whether a vendor key of then is no longer known.
func (w *world) hasForgotten(then time.Time) bool {
	return w != nil && w.forgets > 0 && time.Since(then) > w.forgets
}

// date is the field that tells the API's time (RFC 9110 §6.6.1).
func (w *world) date(now time.Time) string {
	if w != nil {
		now = now.Add(w.clock)
	}
	return "Date: " + now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT") + "\r\n"
}

func (w *world) isBelieved() bool { return w != nil && w.believed }

// lists changes what a listing of a reference shows from a place on.
func (w *world) lists(a *api, reference string, all []*object, at int) []*object {
	if w == nil {
		return all
	}
	r := drawn(a.plan.seed, "listing", a.reads)
	if w.loses && r.IntN(2) == 0 {
		all = slices.DeleteFunc(all, func(o *object) bool { return o.KeepID != others })
	}
	if w.shifts && at > 0 && len(all) > 0 && all[0].KeepID == others && r.IntN(3) > 0 {
		all = all[1:]
	}
	if w.alike {
		var item, n int
		_, _ = fmt.Sscanf(reference, "item-%d-%d", &item, &n)
		all = append(all, &object{
			ID: "alike-" + reference, Reference: reference, KeepID: others, Amount: 100 + n,
			CreatedAt: w.created(a.begun.Add(-time.Minute)).UTC().Format(time.RFC3339Nano),
		})
	}
	return all
}

// others marks what is somebody else's.
const others = "somebody's"
