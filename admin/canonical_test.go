package admin

import (
	"strings"
	"testing"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

func TestAPersonsFieldNamesAreWrittenAsAServerDoes(t *testing.T) {
	t.Parallel()
	got := canonicalHeader(wire.Header{"content-type": {"text/plain"}, "X-MANY": {"1"}, "x-many": {"2"}})
	if len(got) != 2 || len(got["Content-Type"]) != 1 || len(got["X-Many"]) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestAStoredAnswerIsNotMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result  ledger.ResultState
		missing bool
	}{
		"the answer is stored": {ledger.ResultKnown, false},
		"the answer was lost":  {ledger.ResultUnknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &ledger.Mutation{Outcome: ledger.Outcome{Committed: true, ResultState: c.result, Dispatches: []ledger.Dispatch{{ID: "d"}}}}
			if got := strings.Contains(whyUnknown(m), "what is missing is the answer"); got != c.missing {
				t.Errorf("says that the answer is missing: %t", got)
			}
		})
	}
}
