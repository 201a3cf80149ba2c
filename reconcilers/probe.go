package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// userAgent names the sender of reads whose rule does not (RFC 9110 §10.1.5); some
// APIs refuse requests without one.
const userAgent = "keep-proxy"

// probe asks the API by reads, as the rule describes.
type probe struct{ *Reconciler }

func (p probe) try(ctx context.Context, t *try) (outcome, bool) {
	return p.observe(ctx, t, p.ask(ctx, t)), true
}

// asked is what the reads of one try have in common.
type asked struct {
	lines     []string
	reached   bool
	notBefore time.Time
	// lacks says what the last answer lacks to be whole, if it does.
	lacks string
	// told is that of the last read.
	told func(field string) bool
	// ages are the Age of each answer that wasn't made for its read.
	ages []string
	// clocks holds the largest measured difference between the API's clock and ours, and how far
	// theirs is ahead at least. It also says whether our clock is that of the claim.
	clocks rules.Clocks
	// claimed is the time of the claim that was asked by.
	claimed time.Time
}

// ask sends every read of the probe and says what they showed.
func (p probe) ask(ctx context.Context, t *try) sighting {
	env, sameBoot := t.envByClock(p.now())
	asking, err := t.strategy.Probe.Begin(env)
	if err != nil {
		return sighting{reached: true, reason: fmt.Errorf("%w: %w", errUnaskable, err).Error()}
	}
	all := asked{claimed: env.Mutation.ClaimedAt, clocks: rules.Clocks{SameBoot: sameBoot}}
	for first := true; ; first = false {
		next, more := asking.Next()
		if !more {
			return p.conclude(ctx, t, asking, all)
		}
		request, err := p.request(ctx, t, next)
		if err != nil {
			// What can't be asked will not mend by waiting, so the try counts.
			counts := all.reached || errors.Is(err, errUnaskable)
			return sighting{reached: counts, notBefore: all.notBefore, reason: err.Error(), evidence: all.evidence()}
		}
		if first {
			t.at = p.now()
		}
		sent := p.clock.Now()
		reply := p.wire.send(ctx, request, p.settings.MaxAnswer)
		all.note(len(all.lines)+1, next, reply, sent, p.clock.Now())
		if reply.complete() {
			asking.Answer(&rules.Response{Status: reply.status, Header: reply.header, Body: reply.body, Complete: true})
		} else {
			asking.Answer(nil)
			all.lacks = lacks(reply, p.settings.MaxAnswer)
		}
	}
}

// lacks says why an answer isn't whole.
func lacks(r reply, limit int64) string {
	switch {
	case r.tooLarge:
		return fmt.Sprintf(": it is longer than %d bytes", limit)
	case r.evidence.ErrorClass != "":
		return fmt.Sprintf(" (%s)", r.evidence.ErrorClass)
	}
	return ""
}

// maxClockDiff is how far an answer's date (RFC 9110 §6.6.1) may be from our clock for its absence
// to count. Rules ask for what is newer than the claim, and what a cache answers may be older than
// it.
const maxClockDiff = rules.MaxClockDiff

// errUnaskable is a read that the rule makes in a way in which it must not be sent.
var errUnaskable = errors.New("the probe can't be made")

// request makes one read ready, when the connector's rate admits it.
func (p probe) request(ctx context.Context, t *try, ask *rules.Ask) (*upstream.Request, error) {
	if err := p.limits.wait(ctx, t.connector); err != nil {
		return nil, errors.New("the try was over before the connector's rate admitted a request")
	}
	name, value, err := p.credentials.For(t.mutation.Connector, ask.Scheme, ask.Authority)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	t.secrets = append(t.secrets, value)
	target, err := url.ParseRequestURI(ask.Scheme + "://" + ask.Authority + ask.Target)
	if err != nil {
		return nil, fmt.Errorf("%w: its address is not a valid URL", errUnaskable)
	}
	header := ask.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if name != "" {
		header.Set(name, value)
	}
	if err := p.underAccount(ctx, t, header); err != nil {
		return nil, err
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", userAgent)
	}
	if header.Get("Cache-Control") == "" {
		// What was there before tells nothing (RFC 9111 §5.2.1.4).
		header.Set("Cache-Control", "no-cache")
	}
	request := &upstream.Request{Method: ask.Method, URL: target, Header: header, Total: p.settings.Ask}
	if ask.Body != nil {
		request.Body = upstream.Bytes(ask.Body)
	}
	return request, nil
}

// conclude asks the rule what the answers mean.
func (p probe) conclude(ctx context.Context, t *try, asking *rules.Asking, all asked) sighting {
	var lookup error
	var owners []string
	claimed := func(object string) bool {
		other, err := p.otherOwner(ctx, t.mutation, object)
		lookup = errors.Join(lookup, err)
		if other != "" {
			owners = append(owners, object+" is of "+other)
		}
		return other != ""
	}
	// A clock that was set during the asking is as good as another one.
	if env, _ := t.envByClock(p.now()); env.Mutation.ClaimedAt.Sub(all.claimed).Abs() > time.Second {
		all.clocks.SameBoot = false
	}
	o := asking.Observation(claimed, all.clocks)
	s := sighting{
		reason: o.Reason, evidence: all.evidence(), objects: o.ObjectIDs, strong: o.Tie.Strong(),
		proof: o.AbsenceIsProof, reached: all.reached, notBefore: all.notBefore,
	}
	foreign, err := p.foreign(ctx, t, asking, &o)
	if lookup = errors.Join(lookup, err); lookup != nil {
		return sighting{reason: "the ledger could not say whose evidence an object is", evidence: s.evidence}
	}
	if foreign != "" {
		return sighting{reached: all.reached, notBefore: all.notBefore, reason: s.reason + ", but " + foreign, evidence: s.evidence}
	}
	s.seen = seen(o.Seen)
	s.reason += all.lacks
	if len(owners) > 0 && s.seen == ledger.SeenRetry {
		s.reason += ": " + strings.Join(owners, ", ")
	}
	if s.seen == ledger.SeenAbsent && all.clocks.Off > maxClockDiff {
		s.seen = ledger.SeenRetry
		s.reason = fmt.Sprintf("absent, but the answer's date is %v from our clock: one of the clocks is wrong, or a cache answered",
			all.clocks.Off.Round(time.Second))
	}
	s = t.asAged(s, all.ages)
	if s.seen == ledger.SeenAbsent || s.seen == ledger.SeenApplied && len(s.objects) == 0 {
		s = t.asAuthorised(s, all.told)
	}
	if o.Result != nil && s.seen != ledger.SeenRetry {
		s.result = &rules.Response{Status: o.Result.Status, Header: o.Result.Header, Body: o.Result.Body, Complete: true}
	}
	return s
}

// asAuthorised judges s by who asked. It is a retry if the script had a credential and none is
// configured for it. The API may show less without it, so that what its answer lacks proves neither
// an absence nor a state. To be gone is a state, too. A field that an answer told isn't lacking: the
// probe's own session stands for the script's.
func (t *try) asAuthorised(s sighting, told func(field string) bool) sighting {
	lacks := slices.DeleteFunc(slices.Clone(t.unauthorised), told)
	if len(lacks) == 0 || s.seen == "" || s.seen == ledger.SeenRetry {
		return s
	}
	s.reason = fmt.Sprintf("%s, but it was asked for without a credential in place of %s: the API may show less to whoever comes without",
		s.seen, strings.Join(lacks, ", "))
	s.seen = ledger.SeenRetry
	return s
}

// seen translates what a rule saw; anything unknown is a retry.
func seen(s rules.Seen) ledger.Seen {
	switch s {
	case rules.SeenApplied:
		return ledger.SeenApplied
	case rules.SeenAbsent:
		return ledger.SeenAbsent
	case rules.SeenDuplicate:
		return ledger.SeenDuplicate
	case rules.SeenRetry:
		return ledger.SeenRetry
	}
	return ledger.SeenRetry
}

// note adds one read to the evidence: its request line without what an answer said,
// and what came back.
func (a *asked) note(n int, ask *rules.Ask, r reply, sent, received time.Time) {
	target := ask.Shown
	if target == "" {
		target = ", where the answer before it leads"
	}
	line := fmt.Sprintf("read %d: %s %s%s: ", n, ask.Method, ask.Authority, target)
	switch {
	case r.complete():
		line += fmt.Sprintf("status %d, %d bytes", r.status, len(r.body))
	case r.tooLarge:
		line += fmt.Sprintf("status %d, an answer over the limit", r.status)
	case r.evidence.Head:
		line += fmt.Sprintf("status %d, cut (%s)", r.status, r.evidence.ErrorClass)
	default:
		line += fmt.Sprintf("no answer (%s)", r.evidence.ErrorClass)
	}
	a.lines = append(a.lines, line)
	a.reached, a.told = r.evidence.Head, ask.Told
	// Some say by a 403 that they were asked too often.
	if wait := r.facts.RetryAfter; wait > 0 && r.status >= http.StatusMultipleChoices {
		a.notBefore = received.Add(wait)
	}
	for _, age := range r.header["Age"] {
		if age = strings.TrimSpace(age); age != "0" {
			a.ages = append(a.ages, age)
		}
	}
	if diff, ok := upstream.MeasureClock(r.header, sent, received); ok {
		a.clocks.Off = max(a.clocks.Off, diff.Ahead.Abs()+diff.Within)
		a.clocks.Ahead = max(a.clocks.Ahead, diff.Ahead-diff.Within)
		a.clocks.Measured = true
	}
}

// maxLines is how many reads the evidence tells of: the first ones and the last.
const maxLines = 20

func (a *asked) evidence() string {
	lines := a.lines
	if n := len(lines); n > maxLines {
		left := fmt.Sprintf("(%d more)", n-maxLines)
		lines = slices.Concat(lines[:maxLines/2], []string{left}, lines[n-maxLines/2:])
	}
	return strings.Join(lines, "\n")
}

// asAged is s as it counts where caches answered, whose ages (RFC 9111 §5.1) are given. What was
// made since isn't in such an answer, so that it tells no absence, nor what is still there. What it
// shows was there once. If it is old enough that may have been before the mutation was sent. Then
// only an object that names the mutation is known to be its own.
func (t *try) asAged(s sighting, ages []string) sighting {
	if len(ages) == 0 {
		return s
	}
	var why string
	switch {
	case s.seen == ledger.SeenAbsent:
		why = "what was made since isn't in it"
	case t.verifies && (s.seen == ledger.SeenApplied || s.seen == ledger.SeenDuplicate && !s.strong):
		why = "what was taken away since is in it still"
	case (s.seen == ledger.SeenApplied || s.seen == ledger.SeenDuplicate) && !s.strong && slices.ContainsFunc(ages, t.mayPrecede):
		why = "it may have been so before this was sent"
	default:
		return s
	}
	s.reason = fmt.Sprintf("%s, but a cache answered (Age: %s): %s", s.seen, shorten(ages[0]), why)
	s.seen = ledger.SeenRetry
	return s
}

// mayPrecede reports whether an answer of this age may be older than the first sending that may
// have taken effect.
func (t *try) mayPrecede(age string) bool { return precedes(age, sentAt(t.mutation, t.at), t.at.Wall) }

// asLooked judges what a look at an accepted mutation showed, where caches answered the asking that
// began at this moment. An answer from before the sending is about something else.
func (t *try) asLooked(s sighting, ages []string, at ledger.Stamp) sighting {
	accepted := acceptedAt(t.mutation, at)
	mayPrecede := func(age string) bool { return precedes(age, accepted, at.Wall) }
	if s.seen == ledger.SeenRetry || !slices.ContainsFunc(ages, mayPrecede) {
		return s
	}
	s.reason = fmt.Sprintf("%s, but a cache answered (Age: %s): it may have been so before this was sent", s.reason, shorten(ages[0]))
	s.seen = ledger.SeenRetry
	return s
}

// precedes reports whether an answer of this age, in whole seconds, may be older than the sending.
// A zero sent can't tell, so it may.
func precedes(age string, sent, now time.Time) bool {
	seconds, err := strconv.ParseUint(age, 10, 31)
	return err != nil || sent.IsZero() || time.Duration(seconds+1)*time.Second > now.Sub(sent)
}
