package reconcilers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// timedProbe looks for what is newer than ten minutes before the claim, as one of a marker or
// of the same content.
func timedProbe(tie string) string {
	ours := map[string]string{"marker": "found.keep_id == mutation.marker", "content": "found.reference == json.reference", "unique": "found.reference == json.reference"}[tie]
	return fmt.Sprintf(`    reconcile:
      - probe:
          get: /things
          query: {since: {cel: string(mutation.claimed_at - duration('10m'))}}
          pages: {more: "false", set: {cursor: {cel: "'x'"}}, max: 1}
          candidates: response.json.items
          ours: %s
          tie: %s
          id: found.id
          created: timestamp(found.at)
          absence_is_proof: true
          result: {status: 201, json: {cel: found}}
`, ours, tie)
}

// timed is an API whose clock is right: its one thing was made at a moment of it, and is not
// listed for who asks for newer ones.
type timed struct {
	w *world
	// right is what is to be added to the world's wall clock, and made when the thing was made.
	right time.Duration
	made  time.Time
	mark  string
	date  bool
}

func (a *timed) now() time.Time { return a.w.clock.Now().Add(a.right) }

func (a *timed) answer(rw http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	rw.Header()["Date"] = nil
	if a.date {
		rw.Header().Set("Date", a.now().UTC().Format(http.TimeFormat))
	}
	since, err := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	items := []map[string]string{}
	if err == nil && !a.made.Before(since) {
		items = append(items, map[string]string{"id": "t1", "reference": "a", "keep_id": a.mark, "at": a.made.UTC().Format(time.RFC3339)})
	}
	text, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return false
	}
	_, _ = rw.Write(text)
	return true
}

// A wall clock that is set between claim and asking shows another time of the claim than the
// API's. What the API made must be found all the same, what was there before must not be taken
// for ours, and where the difference can't be known nothing that rests on it is believed.
func TestTheTimeOfTheClaimIsByTheClockThatAsks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tie string
		// wrong is by how much our clock was ahead at the claim, and between what happened since.
		wrong   time.Duration
		between func(w *world)
		made    time.Duration
		undated bool
		want    ledger.Seen
		reason  string
	}{
		"ours, made while our clock was ahead":               {"marker", 30 * time.Minute, nil, time.Second, false, ledger.SeenApplied, ""},
		"ours, made while it was behind":                     {"marker", -30 * time.Minute, nil, time.Second, false, ledger.SeenApplied, ""},
		"ours by content, made while it was ahead":           {"content", 30 * time.Minute, nil, 2 * time.Second, false, ledger.SeenApplied, ""},
		"somebody's from before, while it was behind":        {"content", -30 * time.Minute, nil, -5 * time.Minute, false, ledger.SeenAbsent, ""},
		"somebody's from just before":                        {"content", -30 * time.Minute, nil, -time.Minute, false, ledger.SeenRetry, "can't be told"},
		"nothing, while it was ahead":                        {"marker", 30 * time.Minute, nil, -time.Hour, false, ledger.SeenAbsent, ""},
		"ours after another boot":                            {"marker", 0, (*world).reboot, time.Second, false, ledger.SeenApplied, ""},
		"ours is not found after another boot":               {"marker", 30 * time.Minute, (*world).reboot, time.Second, false, ledger.SeenRetry, "another start of the machine"},
		"ours by content after another boot":                 {"content", 0, (*world).reboot, 2 * time.Second, false, ledger.SeenRetry, "another start of the machine"},
		"somebody's after another boot, while it was behind": {"content", -30 * time.Minute, (*world).reboot, -5 * time.Minute, false, ledger.SeenRetry, "another start of the machine"},
		"nothing, by an answer without a date":               {"marker", 0, nil, -time.Hour, true, ledger.SeenRetry, "no answer has a Date"},
		"somebody's, by an answer without a date":            {"content", 0, nil, 2 * time.Second, true, ledger.SeenRetry, "no answer has a Date"},
	} {
		ties := []string{tc.tie}
		if tc.tie == "content" {
			ties = append(ties, "unique")
		}
		for _, tie := range ties {
			t.Run(name+", "+tie, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, timedProbe(tie))
				api := &timed{w: w, right: -tc.wrong, date: !tc.undated}
				m := w.unknown("a")
				api.made, api.mark = api.now().Add(tc.made), m.Marker
				w.api.script(api.answer)
				w.clock.JumpWall(-tc.wrong)
				api.right = 0
				if tc.between != nil {
					tc.between(w)
				}
				w.after(time.Hour)
				o := last(w.read(m))
				if o.Seen != tc.want || !strings.Contains(o.Reason, tc.reason) {
					t.Errorf("seen %s (%s), want %s because %q", o.Seen, o.Reason, tc.want, tc.reason)
				}
			})
		}
	}
}

// A look at what was accepted goes by that time, too: a failure that was told by another is none, and the
// mutation would be sent again.
func TestALookGoesByTheTimeOfTheClaim(t *testing.T) {
	t.Parallel()
	newer := viaNone + `    watch:
      get: /jobs
      every: 1m
      max: 10h
      until: response.json.jobs.exists(j, timestamp(j.at) >= mutation.claimed_at && j.state == 'done')
      failed_when: "!response.json.jobs.exists(j, timestamp(j.at) >= mutation.claimed_at)"
`
	for name, tc := range map[string]struct {
		// wrong is by how much our clock was ahead at the claim, and between what happened since.
		wrong   time.Duration
		between func(w *world)
		state   string
		want    ledger.State
	}{
		"under way, while our clock was ahead": {30 * time.Minute, nil, "running", ledger.NeedsReconcile},
		"done, while it was ahead":             {30 * time.Minute, nil, "done", ledger.Applied},
		"after another boot":                   {30 * time.Minute, (*world).reboot, "running", ledger.NeedsReconcile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newer)
			m := w.accepted(w.claim("a"))
			w.clock.JumpWall(-tc.wrong)
			made := w.clock.Now().Add(time.Second).UTC().Format(time.RFC3339)
			w.api.script(func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.Header().Set("Date", w.clock.Now().UTC().Format(http.TimeFormat))
				_, _ = fmt.Fprintf(rw, `{"jobs":[{"at":%q,"state":%q}]}`, made, tc.state)
				return true
			})
			if tc.between != nil {
				tc.between(w)
			}
			w.after(time.Hour)
			w.wants(m, tc.want, "")
		})
	}
}

// What was asked for by one clock isn't held against an answer of after another was set.
func TestAClockThatIsSetDuringTheAskingTellsNoTimeOfTheClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, timedProbe("marker"))
	api := &timed{w: w, date: true}
	m := w.unknown("a")
	api.made, api.mark = api.now().Add(-time.Hour), m.Marker
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		w.clock.JumpWall(time.Minute)
		api.right -= time.Minute
		return api.answer(rw, r)
	})
	w.after(time.Hour)
	if o := last(w.read(m)); o.Seen != ledger.SeenRetry || !strings.Contains(o.Reason, "during the asking") {
		t.Errorf("seen %s (%s), want retry", o.Seen, o.Reason)
	}
}

// A program is told of the claim what a probe is asked by.
func TestAProgramIsToldTheTimeOfTheClaimByTheClockOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaNone)
	m := w.unknown("a")
	claimed := m.CreatedAt
	w.clock.Advance(time.Minute)
	w.clock.JumpWall(time.Hour)
	tried := &try{mutation: m, request: w.request("a")}
	if in := inputOf(tried, w.now()); !in.Mutation.SameBoot || !in.Mutation.ClaimedAt.Equal(claimed.Add(time.Hour)) {
		t.Errorf("claimed at %s, the same boot %v; want %s", in.Mutation.ClaimedAt, in.Mutation.SameBoot, claimed.Add(time.Hour))
	}
	w.clock.Reboot(time.Minute)
	if in := inputOf(tried, w.now()); in.Mutation.SameBoot {
		t.Error("after another start of the machine it is the same boot")
	}
}

// An API whose pages come from several machines is as far ahead as the one that is furthest.
func TestTheClockThatIsFurthestAheadCounts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, ahead := range [][]time.Duration{{4 * time.Minute, 0}, {0, 4 * time.Minute}, {4 * time.Minute, -4 * time.Minute}} {
		var all asked
		for n, by := range ahead {
			answer := reply{header: http.Header{"Date": {now.Add(by).Format(http.TimeFormat)}}}
			all.note(n+1, &rules.Ask{}, answer, now, now)
		}
		if c := all.clocks; !c.Measured || c.Ahead < 4*time.Minute-time.Second || c.Off < 4*time.Minute {
			t.Errorf("pages that are %v ahead: %+v", ahead, c)
		}
	}
}

// reboot lets the machine be started again at once.
func (w *world) reboot() {
	w.clock.Reboot(0)
	w.restart()
}

// What is like it and was made between a sending that failed and the one whose answer was lost is
// somebody else's, who may have helped themselves. It is neither taken for ours nor left out.
func TestWhatWasMadeBeforeTheSendingThatIsUnknownIsNotOurs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		made   time.Duration
		want   ledger.Seen
		reason string
	}{
		"before the first claim":      {-2 * time.Hour, ledger.SeenAbsent, ""},
		"between the two":             {-30 * time.Minute, ledger.SeenRetry, "after a sending that failed and before one that may have made it"},
		"just before the first claim": {-61 * time.Minute, ledger.SeenRetry, "of the claim"},
		"by the second one":           {2 * time.Second, ledger.SeenApplied, ""},
	} {
		w := newWorld(t, strings.Replace(timedProbe("content"), "duration('10m')", "duration('24h')", 1))
		api := &timed{w: w, date: true}
		m := w.claim("a")
		d := *m.Current()
		d.Verdict, d.Ended, d.Head, d.Status, d.Class = ledger.VerdictFailed, w.now(), true, http.StatusForbidden, verdict.Permission
		if _, err := w.ledger.EndDispatch(t.Context(), ledger.EndDispatch{Key: m.Key, Dispatch: d}); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Hour)
		m = w.unknown("a")
		api.made = api.now().Add(tc.made)
		w.api.script(api.answer)
		w.after(time.Hour)
		if o := last(w.read(m)); o.Seen != tc.want || !strings.Contains(o.Reason, tc.reason) {
			t.Errorf("made %s: seen %s (%s), want %s because %q", name, o.Seen, o.Reason, tc.want, tc.reason)
		}
	}
}
