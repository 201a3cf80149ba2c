package badgerstore

import (
	"crypto/sha256"
	"testing"

	"keep-proxy/ledger"
)

func TestAMutationCostsTwoCommits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		early bool
		want  uint64
	}{
		"claim and outcome":         {false, 2},
		"committed in between, too": {true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, testConfig(t.TempDir()))
			l := benchLedger(s)
			before := s.Commits()
			key := ledger.Key(sha256.Sum256([]byte(name)))
			claimed, err := l.Claim(t.Context(), ledger.Claim{
				Scope: ledger.Scope{Workflow: "w", Item: "i", Attempt: 1}, Key: key, DispatchID: "d",
				Record: ledger.Mutation{
					Intent:  ledger.Intent{Connector: "bank", Operation: "pay"},
					Payload: ledger.Payload{PayloadDigest: "p", SignificantDigest: "p"},
				},
			})
			if err != nil || claimed.Dispatch == nil {
				t.Fatalf("%+v, %v", claimed, err)
			}
			if c.early {
				if _, err := l.MarkCommitted(t.Context(), key, "d", 201); err != nil {
					t.Fatal(err)
				}
			}
			d := *claimed.Dispatch
			d.Verdict = ledger.VerdictApplied
			if _, err := l.EndDispatch(t.Context(), ledger.EndDispatch{Key: key, Dispatch: d, Result: &ledger.Result{Status: 201}}); err != nil {
				t.Fatal(err)
			}
			if n := s.Commits() - before; n != c.want {
				t.Errorf("%d commits, want %d", n, c.want)
			}
		})
	}
}
