package reconcilers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fault"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// viaRedispatch probes, and sends again what is not there.
const viaRedispatch = viaProbe + "    on_absent: redispatch\n"

// believeAbsent lets the runner confirm an absence twice.
func (w *world) believeAbsent() {
	w.after(5 * time.Minute)
	w.after(10 * time.Second)
}

func TestWhatIsNotThereIsSentAgainOnceUnderTheSameKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaRedispatch)
	m := w.unknown("a")
	w.believeAbsent()
	w.after(0)
	now := w.wants(m, ledger.Applied, "")
	if posts, _, things := w.api.counts(); posts != 1 || things != 1 {
		t.Errorf("%d sendings, %d things, want one each", posts, things)
	}
	w.api.mu.Lock()
	key, auth := w.api.posts[0].Header.Get("Idempotency-Key"), w.api.posts[0].Header.Get("Authorization")
	w.api.mu.Unlock()
	if key != m.VendorKey || auth != w.creds.value {
		t.Errorf("sent with key %q and credential %q", key, auth)
	}
	if now.Result == nil || now.Result.Source != "answer" || now.ResultState != ledger.ResultKnown {
		t.Errorf("result %+v", now.Result)
	}
}

func TestARedispatchWhoseAnswerIsLostIsAskedAboutAndNotSentAThirdTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaRedispatch)
	m := w.unknown("a")
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		return r.Method == http.MethodPost && hangUp(rw, r)
	})
	w.believeAbsent()
	w.after(0)
	w.wants(m, ledger.NeedsReconcile, "")
	w.believeAbsent()
	w.after(time.Hour)
	now := w.wants(m, ledger.Failed, "")
	if !now.Escalated() || now.Escalation.Kind != ledger.EscalationAbsent {
		t.Errorf("escalation %+v", now.Escalation)
	}
	if posts, _, _ := w.api.counts(); posts != 1 {
		t.Errorf("sent %d times by itself, want once", posts)
	}
}

func TestARedispatchThatFailsIsFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaRedispatch)
	m := w.unknown("a")
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			rw.WriteHeader(http.StatusUnprocessableEntity)
			return true
		}
		return false
	})
	w.believeAbsent()
	w.after(0)
	if now := w.wants(m, ledger.Failed, ""); now.Class != verdict.Precondition || now.Queued() {
		t.Errorf("class %s, queued %v", now.Class, now.Queued())
	}
}

func TestARedispatchThatCanNotBeMadeIsCalledOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil  func(w *world)
		queued bool
	}{
		"no credential can be had now":  {func(w *world) { w.creds.err = http.ErrNoCookie }, true},
		"another account is configured": {func(w *world) { w.creds = fixed{header: "X-Account", value: "acct_2"} }, false},
		"the hosts are other ones today": {func(w *world) {
			w.user = []rules.Settings{{Connector: "things", Hosts: []string{"elsewhere.test"}}}
			w.start()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaRedispatch)
			m := w.unknown("a")
			w.after(5 * time.Minute)
			w.clock.Advance(10 * time.Second)
			// One round confirms the absence, and the next one would send.
			w.api.script(func(http.ResponseWriter, *http.Request) bool { return false })
			if _, err := w.ledger.Observe(t.Context(), ledger.Observe{
				Key: m.Key, Version: w.read(m).Version, AbsenceIsProof: true, Reached: true,
				Observation: ledger.Observation{At: w.now(), Strategy: "probe", Seen: ledger.SeenAbsent},
			}); err != nil {
				t.Fatal(err)
			}
			c.spoil(w)
			w.after(0)
			now := w.wants(m, ledger.Failed, "")
			if now.Queued() != c.queued || now.Escalated() == c.queued {
				t.Errorf("queued %v, escalated %v", now.Queued(), now.Escalated())
			}
			if posts, _, _ := w.api.counts(); posts != 0 {
				t.Errorf("%d sendings", posts)
			}
		})
	}
}

// The stored request lacks what the script's own credential was.
func TestARedispatchWithoutItsCredentialIsCalledOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaRedispatch)
	w.scripted = http.Header{"Authorization": {"Bearer of the script"}, "X-Api-Key": {"of the script"}}
	m := w.unknown("a")
	for n := 0; n < 20 && w.read(m).Escalation == nil; n++ {
		w.due(m)
	}
	now := w.wants(m, ledger.Failed, "")
	if now.Queued() || !now.Escalated() || !strings.Contains(now.Escalation.Why, "X-Api-Key") {
		t.Errorf("queued %v, escalation %+v", now.Queued(), now.Escalation)
	}
	if posts, _, _ := w.api.counts(); posts != 0 {
		t.Errorf("%d sendings", posts)
	}
}

// Until its end is recorded, the ledger takes a mutation that is sent by itself for one that is
// under way, and lets what depends on it go on.
func TestARedispatchWhoseEndIsNotRecordedStopsWhatDependsOnIt(t *testing.T) {
	w := newWorld(t, viaRedispatch)
	m := w.unknown("a")
	disarm, err := fault.Do("reconcilers.redispatch_answered", 1, func() { w.store.FailBefore() })
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	w.believeAbsent()
	w.after(0)
	if now := w.read(m); now.State != ledger.InFlight || now.Unresolved() {
		t.Fatalf("it is %s, unresolved %v", now.State, now.Unresolved())
	}
	if stops := w.r.unrecorded.All(); len(stops) != 1 || stops[0].Key != m.Key || stops[0].Scope != m.Policy.BlockScope {
		t.Errorf("what depends on it is stopped by %v", stops)
	}
	if n := w.tally.unrecorded; n != 1 {
		t.Errorf("%d outcomes are counted as not recorded", n)
	}
	w.r.Close()
}

// What breaks once it was sent has its end all the same.
func TestASendingThatPanicsAfterItsEndIsRecorded(t *testing.T) {
	w := newWorld(t, viaRedispatch)
	m := w.unknown("a")
	disarm, err := fault.Do("reconcilers.redispatch_answered", 1, func() { panic("a bug") })
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	w.believeAbsent()
	w.after(0)
	if now := w.wants(m, ledger.Applied, ""); now.Current().Ended.BootID == "" {
		t.Errorf("the sending is %+v", now.Current())
	}
	if posts, _, _ := w.api.counts(); posts != 1 {
		t.Errorf("%d sendings", posts)
	}
}

// What was recorded and not begun has an end: nobody else waits for it, so that it would be in
// flight until a restart.
func TestASendingThatPanicsBeforeItBeginsHasAnEnd(t *testing.T) {
	for name, rule := range map[string]string{"a redispatch": viaRedispatch, "an undo": viaCancel} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule)
			m := w.unknown("a")
			if rule == viaCancel {
				m = w.owed(m, "t1")
			}
			undone := 0
			w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/things/t1/cancellations" {
					return false
				}
				undone++
				rw.WriteHeader(http.StatusCreated)
				return true
			})
			disarm, err := fault.Do("reconcilers.redispatch_recorded", 1, func() { panic("a bug") })
			if err != nil {
				t.Fatal(err)
			}
			defer disarm()
			if rule == viaRedispatch {
				w.believeAbsent()
				w.after(0)
			} else {
				w.after(ledger.DefaultSettle)
			}
			now := w.wants(m, ledger.Failed, "")
			if d := now.Current(); d.Verdict != ledger.VerdictNotSent || d.Ended.BootID == "" || !strings.Contains(d.Error, "panic") {
				t.Fatalf("the sending is %+v", d)
			}
			if posts, _, _ := w.api.counts(); posts != 0 || undone != 0 {
				t.Fatalf("%d sendings", posts+undone)
			}
			if rule == viaCancel {
				w.after(time.Hour)
				w.wants(m, ledger.Applied, "")
				if undone != 1 {
					t.Errorf("undone %d times", undone)
				}
			}
		})
	}
}

// Whether the API's word that it did nothing proves that is the connector's to say, also of what
// is sent again.
func TestASendingAgainTrustsARefusalAsItsConnectorSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaRedispatch)
	m := w.unknown("a")
	for _, trusted := range []bool{true, false} {
		again := &try{mutation: m, at: w.r.now()}
		if _, err := w.r.prepare(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		connector := *again.connector
		connector.TrustRefused, again.connector = trusted, &connector
		request, err := w.r.request(again, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		if request.TrustRefused != trusted {
			t.Errorf("trusted %v, want %v", request.TrustRefused, trusted)
		}
	}
}

// Whose data it would be sent for is asked of the API, which may not tell for a while: that mends
// itself, and nobody has to have it sent then.
func TestASendingWaitsForTheAccountToBeTold(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{
		"of an undo":          viaNone + "    compensate: {delete: \"/things/{object}\"}\n",
		"of what isn't there": viaRedispatch,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, rule)
			w.rule = strings.Replace(w.rule, "account: header[?'x-account'].orValue('')", "account: {get: /me, value: response.json.id, cache: 1s}", 1)
			down := true
			m := w.unknown("a")
			w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method == http.MethodDelete:
					rw.WriteHeader(http.StatusNoContent)
				case r.URL.Path != "/me":
					w.clock.Advance(2 * time.Second) // What was told before is too old.
					return false
				case down && w.read(m).State == ledger.Failed:
					rw.WriteHeader(http.StatusServiceUnavailable)
				default:
					rw.Header().Set("Content-Type", "application/json")
					_, _ = rw.Write([]byte(`{"id":"acct_1"}`))
				}
				return true
			})
			if m.Policy.OnAbsent != ledger.AbsentRedispatch {
				m = w.owed(m, "t1")
			}
			w.believeAbsent()
			w.after(time.Minute)
			if now := w.wants(m, ledger.Failed, ""); now.Escalated() || !now.Queued() {
				t.Fatalf("it isn't sent any more: %+v", now.Escalation)
			}
			down = false
			w.after(time.Hour)
			w.wants(m, ledger.Applied, "")
		})
	}
}
