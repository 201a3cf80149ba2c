package reconcilers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

func TestProbeFindsWhatHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	made := w.api.commit("a", m.Marker, "")
	if c := w.after(10 * time.Second); c.Applied != 1 || c.Tried != 1 {
		t.Fatalf("counts %+v, want one applied", c)
	}
	m = w.wants(m, ledger.Applied, "")
	if m.ResultState != ledger.ResultKnown || m.Result.Status != http.StatusCreated {
		t.Errorf("result %s %+v, want a known one with status 201", m.ResultState, m.Result)
	}
	if body := w.resultOf(m); !strings.Contains(body, made.ID) || !strings.Contains(body, `"reference":"a"`) {
		t.Errorf("result %s is not what was found", body)
	}
	o := last(m)
	if o.Strategy != "probe" || o.Seen != ledger.SeenApplied || !o.Strong || len(o.Objects) != 1 || o.Objects[0] != made.ID {
		t.Errorf("observation %+v", o)
	}
	if posts, gets, _ := w.api.counts(); posts != 0 || gets != 1 {
		t.Errorf("%d mutations and %d reads were sent, want 0 and 1", posts, gets)
	}
}

func TestProbeSendsTheConfiguredCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.unknown("a")
	w.creds.value = "Bearer a-newer-token"
	w.after(10 * time.Second)
	if got := w.api.gets[0].Header.Get("Authorization"); got != "Bearer a-newer-token" {
		t.Errorf("sent %q", got)
	}
}

func TestProbeReadsEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.api.pageSize = 2
	for range 4 {
		w.api.commit("a", "another", "")
	}
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.after(10 * time.Second)
	w.wants(m, ledger.Applied, "")
	if _, gets, _ := w.api.counts(); gets != 3 {
		t.Errorf("%d reads, want 3 pages", gets)
	}
}

// An answer that can't be relied on is never absence, however late it comes.
func TestWhatIsNotAWholeListingIsRetry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(w *world)
		reached bool
		reason  string
	}{
		"not found":             {func(w *world) { w.api.answering(http.StatusNotFound, nil, "{}") }, true, "answered 404 instead of 200"},
		"internal server error": {func(w *world) { w.api.answering(http.StatusInternalServerError, nil, "") }, true, "answered 500"},
		"forbidden":             {func(w *world) { w.api.answering(http.StatusForbidden, nil, "") }, true, "answered 403"},
		"a redirect":            {func(w *world) { w.api.answering(http.StatusFound, http.Header{"Location": {"/"}}, "") }, true, "answered 302"},
		"no JSON":               {func(w *world) { w.api.answering(http.StatusOK, nil, "<html>") }, true, "the listing can't be read"},
		"another shape":         {func(w *world) { w.api.answering(http.StatusOK, nil, `{"data":[]}`) }, true, "no such key: items"},
		"a cut answer":          {func(w *world) { w.api.script(cut) }, true, "no whole answer"},
		"a cut answer that reads like a whole one": {func(w *world) {
			w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
				rw.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(rw, `{"items":[],"next":""}`)
				_ = http.NewResponseController(rw).Flush()
				return hangUp(rw, r)
			})
		}, true, "no whole answer"},
		"a closed connection": {func(w *world) { w.api.script(hangUp) }, false, "no whole answer (eof)"},
		"nobody listens":      {func(w *world) { w.leave() }, false, "no whole answer (dial)"},
		"no answer, ever": {func(w *world) {
			w.api.script(func(_ http.ResponseWriter, r *http.Request) bool {
				w.clock.Advance(time.Minute)
				<-r.Context().Done()
				return true
			})
		}, false, "no whole answer (timeout)"},
		"more pages than it may": {func(w *world) { w.api.pageSize = 1; many(w, 9) }, true, "the listing goes on after 3 pages"},
		"an answer over the limit": {func(w *world) {
			w.api.answering(http.StatusOK, nil, `{"items":[],"next":"","pad":"`+strings.Repeat("x", 11<<20)+`"}`)
		}, true, "longer than 10485760 bytes"},
		"a credential that can't be had": {func(w *world) { w.creds.err = http.ErrNoCookie }, false, "credentials: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaProbe)
			m := w.unknown("a")
			tc.prepare(w)
			c := w.after(time.Hour)
			if c.Waiting != 1 || c.Tried != 1 {
				t.Fatalf("counts %+v, want one waiting", c)
			}
			now := w.wants(m, ledger.NeedsReconcile, tc.reason)
			if posts, _, _ := w.api.counts(); posts != 0 {
				t.Errorf("%d mutations were sent", posts)
			}
			o := last(now)
			if o.Seen != ledger.SeenRetry || o.Counted || o.Reason == "" {
				t.Errorf("observation %+v, want a retry with its reason", o)
			}
			if used := now.Tries == 1; used != tc.reached {
				t.Errorf("tries %d; an answer of the API: %v", now.Tries, tc.reached)
			}
		})
	}
}

func TestAResultThatCannotBeBuiltIsRetryAndTheRecordSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(viaProbe, "json: {cel: found}", "json: {cel: found.gone}", 1))
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.after(10 * time.Second)
	if o := last(w.wants(m, ledger.NeedsReconcile, "no such value: .gone")); o.Seen != ledger.SeenRetry {
		t.Errorf("observation %+v, want a retry", o)
	}
	if posts, _, _ := w.api.counts(); posts != 0 {
		t.Errorf("%d mutations were sent", posts)
	}
}

// many adds things of the reference that are not the mutation's.
func many(w *world, n int) {
	for range n {
		w.api.commit("a", "another", "")
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		after  string
		want   time.Duration
	}{
		"429 in seconds":                      {http.StatusTooManyRequests, "3600", time.Hour},
		"503 in seconds":                      {http.StatusServiceUnavailable, "7200", 2 * time.Hour},
		"a shorter one than backoff":          {http.StatusTooManyRequests, "1", 20 * time.Second},
		"years are cut to a day":              {http.StatusTooManyRequests, "99999999", 24 * time.Hour},
		"403 of a rate limit":                 {http.StatusForbidden, "3600", time.Hour},
		"502 of a gateway":                    {http.StatusBadGateway, "120", 2 * time.Minute},
		"on a success it says nothing":        {http.StatusOK, "3600", 20 * time.Second},
		"one that can't be read says nothing": {http.StatusTooManyRequests, "soon", 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, probeText)
			m := w.unknown("a")
			w.api.answering(tc.status, http.Header{"Retry-After": {tc.after}}, "no")
			w.after(10 * time.Second)
			if got := w.read(m).NextTryAt.Sub(w.clock.Now()); got != tc.want {
				t.Errorf("next try in %v, want %v", got, tc.want)
			}
		})
	}
}

// uniquely is a tie by something unique, with the time of creation.
const uniquely = "tie: unique\n          created: timestamp(found.at)"

func TestDuplicates(t *testing.T) {
	t.Parallel()
	weak := strings.Replace(viaProbe, "tie: marker", uniquely, 1)
	for name, tc := range map[string]struct {
		operation string
		want      ledger.State
	}{
		"tied by the marker it is applied, and a person is told": {viaProbe, ledger.Applied},
		"tied by anything else a person decides":                 {weak, ledger.Indeterminate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.operation)
			m := w.unknown("a")
			w.api.commit("a", m.Marker, "")
			w.api.commit("a", m.Marker, "")
			w.after(10 * time.Second)
			now := w.wants(m, tc.want, "")
			if o := last(now); o.Seen != ledger.SeenDuplicate || len(o.Objects) != 2 || o.Objects[0] != "t1" {
				t.Errorf("observation %+v, want both objects, oldest first", o)
			}
			if !now.Escalated() {
				t.Error("nobody was told")
			}
		})
	}
}

func TestObjectOfAnotherMutationIsNeitherPresenceNorAbsence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.NewReplacer("ours: found.keep_id == mutation.marker", "ours: found.reference == json.reference",
		"tie: marker", uniquely).Replace(viaProbe))
	first := w.unknown("a")
	w.api.commit("a", "mine", "")
	w.after(10 * time.Second)
	w.wants(first, ledger.Applied, "")

	second := w.unknown("b")
	w.api.mu.Lock()
	w.api.things[0].Reference, w.api.things[0].At = "b", w.clock.Now()
	w.api.mu.Unlock()
	for range 4 {
		w.after(time.Hour)
	}
	now := w.wants(second, ledger.NeedsReconcile, "")
	for _, o := range now.Observations {
		if o.Seen != ledger.SeenRetry {
			t.Errorf("observation %+v, want a retry", o)
		}
	}
}

// Nor is that of one of the same key which retention removed.
func TestObjectOfARemovedMutationIsNeitherPresenceNorAbsence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.NewReplacer("ours: found.keep_id == mutation.marker", "ours: found.reference == json.reference",
		"tie: marker", uniquely).Replace(viaProbe))
	removed := w.unknown("a")
	w.api.commit("a", "mine", "")
	w.after(10 * time.Second)
	w.wants(removed, ledger.Applied, "")
	const month = 30 * 24 * time.Hour
	for range 2 {
		w.clock.Advance(month)
		if _, err := w.ledger.Forget(t.Context(), []ledger.Key{removed.Key}, ledger.Retention{Keep: month - time.Hour, Forget: true}); err != nil {
			t.Fatal(err)
		}
	}

	again := w.unknown("a")
	w.api.mu.Lock()
	w.api.things[0].At = w.clock.Now()
	w.api.mu.Unlock()
	for range 4 {
		w.after(time.Hour)
	}
	now := w.wants(again, ledger.NeedsReconcile, "belongs to another mutation: t1 is of "+removed.ID)
	if now.Key != removed.Key || now.Remade != 1 {
		t.Errorf("it is no record of the same key: %+v", now)
	}
}

func TestAnotherAccountIsRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.unknown("a")
	w.api.commit("a", m.Marker, m.VendorKey)
	// The configured credential is the very field that names the account.
	w.creds.header, w.creds.value = "X-Account", "acct_2"
	w.after(10 * time.Second)
	w.wants(m, ledger.NeedsReconcile, "another account")
	if posts, gets, _ := w.api.counts(); posts+gets != 0 {
		t.Errorf("%d requests were sent under another account", posts+gets)
	}
}

// What identifies it was derived at the claim. That it can't be again, without a field that is
// stored masked, says nothing about whose data is asked for.
func TestTheAccountAloneIsDerivedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.rule = strings.Replace(w.rule, "identity: {reference: json.reference}", "identity: {reference: json.reference, who: \"sha256(header['authorization'])\"}", 1)
	w.scripted, w.creds = http.Header{"Authorization": {"Bearer of the script"}}, fixed{header: "X-Key", value: "of the operator"}
	w.start()
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.due(m)
	w.wants(m, ledger.Applied, "")
}

func TestProbeAsksUnderTheAccountOfTheRecord(t *testing.T) {
	t.Parallel()
	other := strings.Replace(viaProbe, "get: /things\n", "get: /things\n          header: {x-account: acct_9}\n", 1)
	post := strings.Replace(viaProbe, "get: /things\n", "post: /things\n          json: {}\n", 1)
	same := strings.Replace(other, "acct_9", "acct_1", 1)
	for name, tc := range map[string]struct {
		operation string
		want      ledger.State
		reason    string
	}{
		"whose field is sent although the rule does not say so": {viaProbe, ledger.Applied, ""},
		"which the rule may say as well":                        {same, ledger.Applied, ""},
		"and under no other":                                    {other, ledger.NeedsReconcile, "the probe can't be made: it asks under another account"},
		"which a read of a body does not change":                {post, ledger.NeedsReconcile, "answered 201"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.operation)
			m := w.unknown("a")
			w.api.commit("a", m.Marker, "")
			w.due(m)
			w.wants(m, tc.want, tc.reason)
			for _, r := range w.api.gets {
				if got := r.Header.Values("X-Account"); len(got) != 1 || got[0] != "acct_1" {
					t.Errorf("asked under account %q", got)
				}
				if r.Header.Get("Content-Type") != "" || r.Header.Get("User-Agent") != "keep-proxy" {
					t.Errorf("sent %v; want only the account's field of the stored ones, and a name", r.Header)
				}
			}
			if tc.want != ledger.Applied && len(w.api.gets) != 0 {
				t.Errorf("%d reads were sent under another account", len(w.api.gets))
			}
		})
	}
}

// rotating gives each credential once.
type rotating []string

func (r *rotating) For(string, string, string) (header, value string, err error) {
	value, *r = (*r)[0], (*r)[1:]
	return "Authorization", value, nil
}

func TestCredentialOfAnotherAccountInTheMiddleOfAProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	w.rule = strings.Replace(w.rule, "account: header[?'x-account'].orValue('')", "account: sha256(header['authorization'])", 1)
	w.scripted = http.Header{"Authorization": {w.creds.value}}
	w.api.pageSize = 1
	m := w.unknown("a")
	many(w, 2)
	w.r.credentials = &rotating{w.creds.value, w.creds.value, "Bearer of another account"}
	w.due(m)
	w.wants(m, ledger.NeedsReconcile, "it asks under another account")
	if _, gets, _ := w.api.counts(); gets != 1 {
		t.Errorf("%d reads, want the first page only", gets)
	}
}

func TestHostsThatAreNoLongerConfiguredAreNotAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaBoth)
	m := w.unknown("a")
	w.user = []rules.Settings{{Connector: "things", Hosts: []string{"elsewhere.test"}}}
	w.start()
	w.after(10 * time.Second)
	w.wants(m, ledger.NeedsReconcile, "the hosts configured now")
	if posts, gets, _ := w.api.counts(); posts+gets != 0 {
		t.Errorf("%d requests were sent to a host that is not configured", posts+gets)
	}
}

// A credential that is for other hosts now doesn't come back by waiting: the tries are used
// up, and a person is asked.
func TestACredentialForOtherHostsUsesUpTheTry(t *testing.T) {
	t.Parallel()
	for err, attempts := range map[error]int{fmt.Errorf("%w: now", ErrElsewhere): 1, errors.New("not now"): 0} {
		w := newWorld(t, viaProbe)
		m := w.unknown("a")
		w.r.credentials = fixed{err: err}
		w.after(10 * time.Minute)
		if now := w.wants(m, ledger.NeedsReconcile, err.Error()); now.Tries != attempts {
			t.Errorf("%v: %d tries are used up; want %d", err, now.Tries, attempts)
		}
		if posts, gets, _ := w.api.counts(); posts+gets != 0 {
			t.Errorf("%d requests were sent without their credential", posts+gets)
		}
	}
}

func TestSecretsStayOutOfTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		// The API echoes the credential into what it lists.
		w.api.mu.Lock()
		defer w.api.mu.Unlock()
		w.api.things[0].Reference = "a"
		w.api.things[0].Note = r.Header.Get("Authorization")
		return false
	})
	w.after(10 * time.Second)
	now := w.wants(m, ledger.Applied, "")
	if body := w.resultOf(now); strings.Contains(body, "sk_live_1234567890") || !strings.Contains(body, masked) {
		t.Errorf("result %s; want the credential masked in it", body)
	}
	if o := last(now); strings.Contains(o.Evidence+o.Reason, "sk_live") {
		t.Errorf("evidence %q, %q holds the credential", o.Evidence, o.Reason)
	}
	if logged := w.log.String(); strings.Contains(logged, "sk_live") || !strings.Contains(logged, `"strategy":"probe"`) {
		t.Errorf("log %s; want one line without the credential", logged)
	}
}

func TestEvidenceSaysWhatWasAskedAndAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.api.answering(http.StatusBadGateway, nil, "oops")
	w.after(10 * time.Second)
	want := "read 1: GET " + w.api.host() + "/things?reference=a: status 502, 4 bytes"
	if got := last(w.read(m)).Evidence; got != want {
		t.Errorf("evidence %q, want %q", got, want)
	}
}

func TestEvidenceOfALongListingIsCut(t *testing.T) {
	t.Parallel()
	var a asked
	for n := range 1000 {
		a.lines = append(a.lines, strconv.Itoa(n))
	}
	if got := a.evidence(); !strings.HasPrefix(got, "0\n1\n") || !strings.HasSuffix(got, "\n998\n999") || !strings.Contains(got, "\n9\n(980 more)\n990\n") {
		t.Errorf("evidence %q", got)
	}
}

func TestPanicInATryIsRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.r.wire.sender, w.r.dispatcher.Sender = panicking{}, panicking{}
	if c := w.after(10 * time.Second); c.Waiting != 1 {
		t.Fatalf("counts %+v, want one waiting", c)
	}
	now := w.wants(m, ledger.NeedsReconcile, "a panic of type")
	if o := last(now); strings.Contains(o.Reason, "sk_live") {
		t.Errorf("reason %q holds the panic's value", o.Reason)
	}
	if logged := w.log.String(); !strings.Contains(logged, "panicking") || strings.Contains(logged, "sk_live") {
		t.Errorf("log %s; want where it broke, without the panic's value", logged)
	}
}
