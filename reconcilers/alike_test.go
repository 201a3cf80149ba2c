package reconcilers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// contentOf are lines of a probe that knows a thing by its content, which is the same for
// every reference, or by that and a tag.
func contentOf(ours string) string {
	return strings.Replace(timedProbe("content"), "ours: found.reference == json.reference", "ours: "+ours, 1)
}

// edited is another mutation, which a later version of the rule answered.
func edited(change ...string) func(w *world, claim func() *ledger.Mutation) {
	return func(w *world, claim func() *ledger.Mutation) {
		before := w.rule
		w.rule = strings.NewReplacer(append([]string{"version: 1", "version: 2"}, change...)...).Replace(w.rule)
		if len(change) > 0 && w.rule == strings.Replace(before, "version: 1", "version: 2", 1) {
			w.Fatal("nothing was edited")
		}
		w.ended(claim(), ledger.VerdictApplied)
	}
}

// What is found by a weak tie may be what another mutation made whose answer named nothing:
// taken for this one's, this one's effect would be lost.
func TestWhatAnotherMutationMayHaveMadeIsNotTakenByAWeakTie(t *testing.T) {
	t.Parallel()
	const alike, told = "found.reference == 'a'", "found.reference == json.reference"
	for name, tc := range map[string]struct {
		ours string
		// other is what became of the other mutation.
		other func(w *world, claim func() *ledger.Mutation)
		want  ledger.Seen
	}{
		"no other": {alike, func(*world, func() *ledger.Mutation) {}, ledger.SeenApplied},
		"another that was answered": {alike, func(w *world, claim func() *ledger.Mutation) {
			w.ended(claim(), ledger.VerdictApplied)
		}, ledger.SeenRetry},
		"another that is unknown": {alike, func(w *world, claim func() *ledger.Mutation) {
			w.uncertain(claim(), false)
		}, ledger.SeenRetry},
		"another that is being sent": {alike, func(_ *world, claim func() *ledger.Mutation) { claim() }, ledger.SeenRetry},
		"another that failed": {alike, func(w *world, claim func() *ledger.Mutation) {
			w.ended(claim(), ledger.VerdictFailed)
		}, ledger.SeenApplied},
		"another of another content": {told, func(w *world, claim func() *ledger.Mutation) {
			w.ended(claim(), ledger.VerdictApplied)
		}, ledger.SeenApplied},
		"another under another version":                 {told, edited(), ledger.SeenApplied},
		"the same content under another version":        {alike, edited(), ledger.SeenRetry},
		"another version that wouldn't tell them apart": {told, edited("ours: "+told, "ours: "+alike), ledger.SeenRetry},
		"another version that asks for something else":  {told, edited("ours: "+told, "ours: found.title == json.reference"), ledger.SeenRetry},
		"another version that calls the state by conditions": {told, func(w *world, claim func() *ledger.Mutation) {
			w.rule = strings.Replace(w.rule, "version: 1", "version: 2", 1)
			head, _, _ := strings.Cut(w.rule, "          pages:")
			w.rule = head + "          observe: [{when: response.json.items.size() > 0, is: applied}]\n"
			w.ended(claim(), ledger.VerdictApplied)
		}, ledger.SeenRetry},
		"another version that knows no probe": {told, func(w *world, claim func() *ledger.Mutation) {
			head, _, _ := strings.Cut(strings.Replace(w.rule, "version: 1", "version: 2", 1), "    reconcile:")
			w.rule = head + viaNone
			w.ended(claim(), ledger.VerdictApplied)
		}, ledger.SeenRetry},
		"another version that keeps a value secret":                              {told, edited("    effect: mutation", "    effect: mutation\n    secret: [json.amount]"), ledger.SeenRetry},
		"words about what the other wrote in its own way":                        {told + " && mutation.id != ''", edited(), ledger.SeenRetry},
		"words about a header field, which may be the client's":                  {told + " && header[?'x-a'].orValue('') != 'zz'", edited(), ledger.SeenRetry},
		"words about the account":                                                {told + " && account != 'zz'", edited(), ledger.SeenRetry},
		"another under a version that names the operation otherwise, told apart": {told, edited("name: thing.create", "name: thing.make"), ledger.SeenApplied},
		"another under a version that names the operation otherwise": {alike, func(w *world, claim func() *ledger.Mutation) {
			w.rule = strings.NewReplacer("version: 1", "version: 2", "name: thing.create", "name: thing.make").Replace(w.rule)
			w.ended(claim(), ledger.VerdictApplied)
		}, ledger.SeenRetry},
		"another of another operation under another version": {alike, func(w *world, claim func() *ledger.Mutation) {
			w.rule = strings.NewReplacer(
				"version: 1", "version: 2", "name: thing.create", "name: thing.name", "{method: POST, path: /things}", "{method: POST, path: /names}",
			).Replace(w.rule)
			w.make = func(reference string) *rules.Request {
				of := w.request(reference)
				req, refusal := rules.Rebuild(of.Method, strings.Replace(of.URL(), "/things", "/names", 1), of.Header, of.Body())
				if refusal != nil {
					w.Fatal(refusal)
				}
				return req
			}
			w.scripted = http.Header{"X-Account": {"acct_2"}} // It finds evidence of its own.
			w.ended(claim(), ledger.VerdictApplied)
		}, ledger.SeenApplied},
		"another of another account": {alike, func(w *world, claim func() *ledger.Mutation) {
			w.scripted = http.Header{"X-Account": {"acct_2"}}
			w.ended(claim(), ledger.VerdictApplied)
		}, ledger.SeenApplied},
		"another whose object is known": {alike, func(w *world, claim func() *ledger.Mutation) {
			w.found(w.uncertain(claim(), false), "t2")
		}, ledger.SeenApplied},
	} {
		for _, tie := range []string{"content", "unique"} {
			t.Run(name+", "+tie, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, strings.Replace(contentOf(tc.ours), "tie: content", "tie: "+tie, 1))
				api := &timed{w: w, date: true}
				m := w.unknown("a")
				tc.other(w, func() *ledger.Mutation { return w.claim("b") })
				api.made = api.now().Add(2 * time.Second)
				w.api.script(api.answer)
				w.after(time.Hour)
				o := last(w.read(m))
				if o.Seen != tc.want || tc.want == ledger.SeenRetry && !strings.Contains(o.Reason, "which can't be told apart") {
					t.Errorf("seen %s (%s), want %s", o.Seen, o.Reason, tc.want)
				}
			})
		}
	}
}

// A version that calls the operation otherwise may ask for it at another address, too: that it is the
// same one is the word of its was, or what either version takes the other's request for, and of hosts
// that a version doesn't know nothing is told.
func TestWhatAnotherVersionMadeElsewhereIsNotTakenByItsContent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// change makes the other version of the rule, and elsewhere a request of it.
		change    []string
		elsewhere func(url string) string
		// first says whether the one that is lost is of the rule as it was.
		first []bool
		// apart says that the other version takes the request of this one for the same, so that ours can tell.
		apart bool
	}{
		"at another path": {
			[]string{"name: thing.create", "name: thing.make\n    was: [thing.create]", "path: /things}", "path: /v2/things}"},
			func(url string) string { return strings.Replace(url, "/things", "/v2/things", 1) },
			[]bool{true, false},
			false,
		},
		"at another path, by a version that takes both": {
			[]string{
				"name: thing.create", "name: thing.make",
				"{method: POST, path: /things}", "[{method: POST, path: /things}, {method: POST, path: /v2/things}]",
			},
			func(url string) string { return strings.Replace(url, "/things", "/v2/things", 1) },
			[]bool{true, false},
			true,
		},
		"at another host": {
			[]string{"name: thing.create", "name: thing.make", "hosts: [", `hosts: ["other.example", `},
			func(string) string { return "http://other.example/things" },
			[]bool{true}, // There is nothing to be asked at the other one.
			false,
		},
	} {
		for i := range 2 * len(tc.first) {
			first, told := tc.first[i/2], i%2 == 1
			t.Run(fmt.Sprint(name, ", first ", first, ", told ", told), func(t *testing.T) {
				t.Parallel()
				ours, want := "found.reference == 'a'", ledger.SeenRetry
				if told {
					ours = "found.reference == json.reference"
				}
				if told && tc.apart && !first {
					want = ledger.SeenApplied
				}
				w := newWorld(t, contentOf(ours))
				api := &timed{w: w, date: true}
				of := w.rule
				other := strings.NewReplacer(append([]string{"version: 1", "version: 2"}, tc.change...)...).Replace(of)
				under := func(rule string) {
					w.rule, w.make = rule, nil
					if rule == other {
						w.make = func(reference string) *rules.Request {
							made := w.request(reference)
							req, refusal := rules.Rebuild(made.Method, tc.elsewhere(made.URL()), made.Header, made.Body())
							if refusal != nil {
								w.Fatal(refusal)
							}
							return req
						}
					}
				}
				pair := []string{of, other}
				if !first {
					slices.Reverse(pair)
				}
				under(pair[0])
				m := w.unknown("a")
				under(pair[1])
				w.ended(w.claim("b"), ledger.VerdictApplied)
				api.made = api.now().Add(2 * time.Second)
				w.api.script(api.answer)
				w.after(time.Hour)
				if o := last(w.read(m)); o.Seen != want || want == ledger.SeenRetry && !strings.Contains(o.Reason, "which can't be told apart") {
					t.Errorf("seen %s (%s)", o.Seen, o.Reason)
				}
			})
		}
	}
}

// What was answered before this one was claimed can't have made what is younger; what ended
// without an answer can.
func TestWhatWasAnsweredBeforeTheClaimMadeNothingAfterIt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		verdict ledger.Verdict
		between func(w *world)
		want    ledger.Seen
	}{
		{ledger.VerdictApplied, nil, ledger.SeenApplied},
		{ledger.VerdictApplied, (*world).reboot, ledger.SeenApplied},
		{ledger.VerdictCommitted, nil, ledger.SeenApplied},
		{ledger.VerdictUncertain, nil, ledger.SeenRetry},
		{ledger.VerdictUncertain, (*world).reboot, ledger.SeenRetry},
	} {
		w := newWorld(t, contentOf("found.reference == 'a'"))
		api := &timed{w: w, date: true}
		w.ended(w.claim("b"), tc.verdict)
		w.clock.Advance(time.Second)
		if tc.between != nil {
			tc.between(w)
		}
		m := w.unknown("a")
		api.made = api.now().Add(2 * time.Second)
		w.api.script(api.answer)
		w.after(time.Hour)
		if o := last(w.read(m)); o.Seen != tc.want {
			t.Errorf("another one that was %s before: seen %s (%s), want %s", tc.verdict, o.Seen, o.Reason, tc.want)
		}
	}
}

// ended ends the current dispatch with a verdict.
func (w *world) ended(m *ledger.Mutation, v ledger.Verdict) *ledger.Mutation {
	w.Helper()
	d := *m.Current()
	d.Verdict, d.Ended, d.BytesWritten, d.Status = v, w.now(), 200, http.StatusCreated
	if v.Failure() {
		d.Class, d.Status = verdict.Logic, http.StatusConflict
	}
	out, err := w.ledger.EndDispatch(w.Context(), ledger.EndDispatch{Key: m.Key, Dispatch: d, NextTryAt: w.r.NextTry(m)})
	if err != nil {
		w.Fatal(err)
	}
	return out.Mutation
}

// found settles a mutation by an object.
func (w *world) found(m *ledger.Mutation, object string) {
	w.Helper()
	_, err := w.ledger.Observe(w.Context(), ledger.Observe{Key: m.Key, Version: m.Version, Reached: true, Observation: ledger.Observation{
		At: w.now(), Strategy: string(rules.StrategyProbe), Seen: ledger.SeenApplied, Objects: []string{object},
	}})
	if err != nil {
		w.Fatal(err)
	}
}
