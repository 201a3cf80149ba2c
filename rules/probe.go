package rules

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Env is what a probe may read: the request as it was claimed, its record, and
// whose data it changes.
type Env struct {
	// Request is the stored request; places that are secret may be masked.
	Request  *Request
	Mutation Mutation
	Account  string
	// Verifies says that the effect is known. What was made may have been changed since.
	Verifies bool
}

// Ask is one request that a probe wants sent, to the authority of the mutation
// itself. Credentials are the caller's business.
type Ask struct {
	// Method is GET or POST.
	Method    string
	Scheme    string
	Authority string
	// Target is the request target in origin form.
	Target string
	// Shown is the target as people may see it. It is empty where an answer of the API said how to go on, as for a next
	// page.
	Shown  string
	Header http.Header
	// Told reports whether an answer before told the value of a header field, such as a session's.
	Told func(name string) bool
	// Body is nil for GET.
	Body []byte
}

// First shows the first request of a try, or why there is none.
func (p *Probe) First(env Env) string {
	asking, err := p.Begin(env)
	if err != nil {
		return "nothing: " + err.Error()
	}
	ask, _ := asking.Next()
	return ask.Method + " " + ask.Scheme + "://" + ask.Authority + ask.Shown
}

// request is the ask as a request; what can't be one has no URL.
func (a *Ask) request() *Request {
	if r, refusal := Rebuild(a.Method, a.Scheme+"://"+a.Authority+a.Target, a.Header, a.Body); refusal == nil {
		return r
	}
	return &Request{Method: a.Method, Header: a.Header}
}

// Seen is what a probe saw.
type Seen uint8

// What a probe saw. The zero value is retry: it saw nothing that counts.
const (
	// SeenRetry is no observation; ask again later.
	SeenRetry Seen = iota
	// SeenApplied is the one object or state that the mutation made.
	SeenApplied
	// SeenAbsent is that it isn't there.
	SeenAbsent
	// SeenDuplicate is more than one object.
	SeenDuplicate
)

// String is the word of the ledger; an unknown value is "retry".
func (s Seen) String() string {
	switch s {
	case SeenApplied:
		return "applied"
	case SeenAbsent:
		return "absent"
	case SeenDuplicate:
		return "duplicate"
	case SeenRetry:
		return "retry"
	}
	return "retry"
}

// Tie is how a rule knows that an object is this mutation's.
type Tie string

// Ties. Only vendor_key and marker allow a duplicate to be undone.
const (
	TieVendorKey Tie = "vendor_key"
	TieMarker    Tie = "marker"
	TieUnique    Tie = "unique"
	TieContent   Tie = "content"
)

// Strong reports whether the tie names this very mutation.
func (t Tie) Strong() bool { return t == TieVendorKey || t == TieMarker }

// Weak reports whether somebody else's object may have the tie. Such an object counts only if it is younger than the
// claim.
func (t Tie) Weak() bool { return t == TieUnique || t == TieContent }

// Result is the answer that a script gets for a mutation found by a probe.
type Result struct {
	Status int
	Header http.Header
	Body   []byte
}

// Observation is what one whole probe came to.
type Observation struct {
	Seen   Seen
	Reason string
	// ObjectIDs are the upstream's own ids of the objects found. They are newest last where the rule says when they
	// were created, else in listing order.
	ObjectIDs []string
	// Result is nil where the rule has no result template.
	Result *Result
	Tie    Tie
	// AbsenceIsProof is what the rule says of its own absence.
	AbsenceIsProof bool
}

// createdMargin is how far a creation time may be off beyond the measured
// difference of the clocks.
const createdMargin = 2 * time.Minute

// MaxClockDiff is how far the API's clock may be from ours for an absence to be taken at its
// word. What a rule asks for by the time of the claim begins that much earlier.
const MaxClockDiff = 5 * time.Minute

// Clocks is how the upstream's clock was measured against ours.
type Clocks struct {
	// Off is the largest difference, of either sign.
	Off time.Duration
	// Ahead is by how much theirs is ahead of ours at least.
	Ahead time.Duration
	// Measured says that an answer told their time. SameBoot says that our time of the claim is by the clock of now:
	// the machine wasn't started again since. Unless both hold, what depends on the time of the claim is retry.
	Measured, SameBoot bool
}

// untold says why the time of the claim can't be held against theirs; "" where it can be.
func (c Clocks) untold() string {
	switch {
	case !c.SameBoot:
		return "our clock may have been set since, by another start of the machine or during the asking"
	case !c.Measured:
		return "no answer has a Date to measure the API's clock by"
	}
	return ""
}

// Observation is what the try came to; retry unless it ran to its end.
//
// claimedByOther says whether an object is another mutation's evidence; nil takes every object for claimed. The clocks
// only count for a weak tie.
func (a *Asking) Observation(claimedByOther func(objectID string) bool, clocks Clocks) Observation {
	o := Observation{Tie: a.probe.tie, AbsenceIsProof: a.probe.absenceIsProof}
	if claimedByOther == nil {
		claimedByOther = func(string) bool { return true }
	}
	switch {
	case !a.done && a.stopped == "":
		o.Reason = "the probe did not run to its end"
	case !a.done:
		o.Reason = a.stopped
	case Strategy{Probe: a.whole}.Blind(a.env.Mutation):
		o.Reason = "it looks for the marker, which was left out"
	case len(a.probe.observe) > 0:
		a.state(&o, claimedByOther)
	default:
		a.listing(&o, claimedByOther, clocks)
	}
	if a.cut && (o.Seen == SeenAbsent || o.Seen == SeenApplied && a.takesAway()) {
		reason := o.Seen.String() + ", but by its Link field an answer goes on of which one page was read"
		o = Observation{Tie: o.Tie, AbsenceIsProof: o.AbsenceIsProof, Reason: reason}
	}
	if untold := clocks.untold(); untold != "" && a.restsOnClaim(o.Seen) {
		reason := fmt.Sprintf("%s, but the rule goes by the time of the claim: %s", o.Seen, untold)
		o = Observation{Tie: o.Tie, AbsenceIsProof: o.AbsenceIsProof, Reason: reason}
	}
	return o
}

// restsOnClaim reports whether what was seen depends on when the mutation was claimed. It was judged by that time, or,
// for an absence and what is gone, asked for by it.
func (a *Asking) restsOnClaim(seen Seen) bool {
	if seen == SeenApplied && a.takesAway() && a.whole.asksByClaim() {
		return true
	}
	switch seen {
	case SeenApplied, SeenDuplicate:
		return a.whole.judgesByClaim()
	case SeenAbsent:
		return a.whole.judgesByClaim() || a.whole.asksByClaim()
	case SeenRetry:
	}
	return false
}

// takesAway reports whether the effect, told by conditions, is that something is gone.
func (a *Asking) takesAway() bool {
	return len(a.probe.observe) > 0 && len(a.ids) == 0 && takesAway(a.env)
}

// takesAway reports whether the effect is that something is gone: of a DELETE, and of an undo. What is
// gone isn't on any page.
func takesAway(env Env) bool {
	return env.Request.Method == http.MethodDelete || env.Mutation.Object != ""
}

// state is the observation of conditions on a state.
func (a *Asking) state(o *Observation, claimedByOther func(string) bool) {
	if slices.ContainsFunc(a.ids, claimedByOther) {
		o.Reason = "the object is another mutation's"
		return
	}
	o.Seen, o.Reason, o.ObjectIDs, o.Result = a.seen, a.reason, a.ids, a.result
}

// listing is the observation of objects in a listing, in this order. An object whose time can't be told is retry. An
// object that is another mutation's is no presence, and leaving it out proves nothing. Then the number decides. One
// object of a weak tie must not have another payload.
func (a *Asking) listing(o *Observation, claimedByOther func(string) bool, clocks Clocks) {
	found := slices.Clone(a.found)
	if a.probe.tie.Weak() && len(found) > 0 {
		if a.probe.created == nil {
			o.Reason = "whether the object " + printable(found[0].id) + " is older than the claim can't be told: the rule has no created"
			return
		}
		if untold := clocks.untold(); untold != "" {
			o.Reason = fmt.Sprintf("whether the object %s is older than the claim can't be told: %s", printable(found[0].id), untold)
			return
		}
		var unsure string
		if found, unsure = a.sinceClaim(found, clocks); unsure != "" {
			o.Reason = unsure
			return
		}
	}
	all := len(found)
	found = slices.DeleteFunc(found, func(one object) bool { return claimedByOther(one.id) })
	if left := all - len(found); left > 0 && (len(found) == 0 || a.probe.tie != TieContent) {
		o.Reason = fmt.Sprintf("%s of what was found belongs to another mutation", plural(left, "object", "objects"))
		return
	}
	if a.probe.created != nil {
		slices.SortStableFunc(found, func(x, y object) int { return x.created.Compare(y.created) })
	}
	switch len(found) {
	case 0:
		o.Seen, o.Reason = SeenAbsent, fmt.Sprintf("nothing of it in %s", plural(a.read, "page", "pages"))
	case 1:
		if a.probe.tie.Weak() && !a.env.Verifies {
			if field := a.otherwise(found[0].item); field != "" {
				o.Reason = "the object " + printable(found[0].id) + " has another " + printable(field) + " than the request, so it may be somebody else's"
				return
			}
		}
		o.Seen, o.Reason, o.Result = SeenApplied, "the object "+printable(found[0].id)+" is ours", found[0].result
	default:
		o.Seen, o.Reason, o.Result = SeenDuplicate, plural(len(found), "object", "objects")+" are ours", found[0].result
	}
	for _, one := range found {
		o.ObjectIDs = append(o.ObjectIDs, one.id)
	}
}

// sinceClaim leaves the objects that are young enough to be of the mutation, or says why that can't be told.
func (a *Asking) sinceClaim(found []object, clocks Clocks) (left []object, unsure string) {
	fine := a.probe.resolution
	margin := clocks.Off.Abs() + createdMargin + fine
	claimed := a.env.Mutation.ClaimedAt
	// By a clock that is ahead, what was there before the claim looks younger.
	ahead := max(0, clocks.Ahead)
	since := claimed.Add(ahead)
	if sent := a.env.Mutation.SentAt.Add(ahead); sent.After(since) {
		since = sent
	}
	// What was made in the same unit of the API's times may be older or younger.
	if fine > 0 {
		since = since.Truncate(fine).Add(fine)
	}
	for _, one := range found {
		switch {
		case !one.created.Before(since) || one.created.Before(claimed.Add(-margin)):
			continue
		case one.created.Before(claimed.Add(ahead + fine)):
			return nil, fmt.Sprintf("the object %s was created within %v of the claim, so it can't be told whose it is; "+
				"a created in fractions of a second, or a marker, tells", printable(one.id), margin)
		default:
			return nil, fmt.Sprintf("the object %s was created after a sending that failed and before one that may have made it, so it may not be ours",
				printable(one.id))
		}
	}
	return slices.DeleteFunc(found, func(one object) bool { return one.created.Before(since) }), ""
}
