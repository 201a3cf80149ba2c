package integration

import (
	"net/http"
	"testing"

	"keep-proxy/admin/wire"
)

func TestAnAppliedMutationIsReplayedWithItsHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open("a").transfer(w.keyed, "R-1").wantApplied(http.StatusCreated)
	again := w.again("a").transfer(w.keyed, "R-1").wantReplay(first)
	w.restart()
	later := w.again("a").transfer(w.keyed, "R-1", field("Accept-Encoding", "gzip, br")).wantReplay(first)
	for _, name := range []string{"Location", "Content-Type", "Date", "Content-Length"} {
		if want := first.header.Get(name); want == "" || again.header.Get(name) != want || later.header.Get(name) != want {
			t.Errorf("%s: first %q, then %q, after a restart %q", name, want, again.header.Get(name), later.header.Get(name))
		}
	}
	w.keyed.want("transfer:R-1", 1, 1)
}

func TestAReplayDoesNotDependOnWhatTheScriptAccepts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open("a").transfer(w.keyed, "R-1", field("Accept-Encoding", "gzip")).wantApplied(http.StatusCreated)
	for _, coding := range []string{"identity", "gzip", "br;q=1, *;q=0", "zstd"} {
		a := w.again("a").transfer(w.keyed, "R-1", field("Accept-Encoding", coding)).wantReplay(first)
		if got := a.header.Get("Content-Encoding"); got != "" {
			t.Errorf("under Accept-Encoding %s the replay has Content-Encoding %s", coding, got)
		}
	}
	w.keyed.want("transfer:R-1", 1, 1)
}

func TestAMinorChangeOfThePayloadIsReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.keyed.URL() + "/transfers"
	first := w.open("a").do(http.MethodPost, url, orderOf(map[string]any{"reference": "R-1", "note": "one"})).wantApplied(http.StatusCreated)
	w.again("a").do(http.MethodPost, url, orderOf(map[string]any{"reference": "R-1", "note": "two"})).wantReplay(first)
	w.again("a").do(http.MethodPost, url, `{"reference":"R-1","currency":"EUR","amount":1250,"to":"bob","from":"ann"}`).wantReplay(first)
	w.keyed.want("transfer:R-1", 1, 1)
}

func TestASignificantChangeOfThePayloadWaitsForAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, other := w.keyed.URL()+"/transfers", orderOf(map[string]any{"reference": "R-1", "amount": 999})
	first := w.open("a").transfer(w.keyed, "R-1").wantApplied(http.StatusCreated)
	second := w.again("a")
	second.do(http.MethodPost, url, other).wantRefusal("payload-mismatch", 422, "another payload")
	second.wantState("paused:attention")
	second.read(w.keyed).wantRefusal("run-aborted", 424, "over")
	_, err := w.tryOpen("a")
	wantProblem(t, err, "item-attention", http.StatusConflict)
	// Other items go on.
	w.open("b").transfer(w.keyed, "R-2").wantApplied(http.StatusCreated)

	m := w.mutation("a")
	if m.Escalation == nil || m.Escalation.Kind != "payload_mismatch" {
		t.Errorf("escalation: %+v", m.Escalation)
	}
	w.resolve(m, wire.Resolve{Action: wire.ActionAcceptPayload})
	w.again("a").do(http.MethodPost, url, other).wantReplay(first)
	w.again("a").transfer(w.keyed, "R-1").wantReplay(first)
	w.keyed.want("transfer:R-1", 1, 1)
}
