package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// The caller whose own request went out must not read that nothing was sent, and reads as
// later ones do who can give its result.
func TestWhatWasSentIsNotSaidToBeUnsent(t *testing.T) {
	t.Parallel()
	for words, standIn := range map[string]string{
		"its result is not known.": "",
		"on_no_result":             "    on_no_result: {status: 202, json: {id: {cel: json.missing}}}\n",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lost)
			w.use(changed("    describe: \"Ask {json.to}\"\n", "    describe: \"Ask {json.to}\"\n"+standIn))
			w.inliner.try = func(ctx context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
				done, err := w.ledger.Observe(ctx, ledger.Observe{
					Key: m.Key, Version: m.Version, Inline: true, Reached: true,
					Observation: ledger.Observation{At: m.Current().Ended, Strategy: "probe", Seen: ledger.SeenApplied},
				})
				return done.Mutation, err
			}
			first := w.open("a").post("/ask", `{"to":"x"}`)
			wantProblem(t, first, "no-result", http.StatusFailedDependency, words)
			if strings.Contains(first.body, "othing was sent") {
				t.Errorf("it was sent: %s", first.body)
			}
			m := w.mutation("a")
			resolve := "keep-proxy resolve " + m.ID
			advised := strings.Contains(first.body, resolve+" --happened --result FILE.") && strings.Contains(first.body, `"actions":["`+resolve+`"]`)
			if !advised || !m.Escalated() {
				t.Errorf("a person is asked: %t; told: %s", m.Escalated(), first.body)
			}
			w.wantSends("/ask", 1)
		})
	}
}

func TestWhatWasSentAndCantBeReadIsNotSaidToBeUnsent(t *testing.T) {
	t.Parallel()
	for state, want := range map[ledger.State]problem{ledger.Applied: problemNoResult, ledger.Failed: problemInternal} {
		s := &reply{decision: ledger.DecideDispatch, mutation: &ledger.Mutation{Outcome: ledger.Outcome{State: state}}}
		if f := s.unreadable(errors.New("a broken disk")); f.problem != want || strings.Contains(f.detail, "othing was sent") {
			t.Errorf("%s: %s: %s", state, f.problem, f.detail)
		}
		s.decision = ledger.DecideReplay
		if f := s.unreadable(errors.New("a broken disk")); f.problem != problemLedgerUnavailable || !strings.Contains(f.detail, "nothing was sent") {
			t.Errorf("a replay: %s: %s", f.problem, f.detail)
		}
	}
}

// What isn't recorded may have arrived although no answer came.
func TestWhatIsNotRecordedAndUnansweredIsNotSaidToBeUnsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lost)
	r := w.open("a")
	for path, ask := range map[string]func() got{
		"/telemetry": func() got { return r.post("/telemetry", `{"n":1}`) },
		"/read":      func() got { return r.get("/read") },
	} {
		g := ask()
		wantProblem(t, g, "not-sent", http.StatusBadGateway, "may have arrived")
		if strings.Contains(g.body, "othing was sent") {
			t.Errorf("it was sent: %s", g.body)
		}
		w.wantSends(path, 1)
	}
	r = newWorld(t, created, unreachable(t)).open("a")
	wantProblem(t, r.post("/telemetry", `{"n":1}`), "not-sent", http.StatusBadGateway, "Nothing was sent")
}
