package dispatch

import (
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

func TestVerdictOfADispatch(t *testing.T) {
	t.Parallel()
	head := upstream.Evidence{Head: true}
	for name, tc := range map[string]struct {
		ev   upstream.Evidence
		kind upstream.VerdictKind
		want ledger.Verdict
	}{
		"applied":                     {head, upstream.Applied, ledger.VerdictApplied},
		"too large is a success":      {head, upstream.TooLarge, ledger.VerdictApplied},
		"cut is committed":            {head, upstream.Committed, ledger.VerdictCommitted},
		"a failure by its answer":     {head, upstream.Failed, ledger.VerdictFailed},
		"proven not sent":             {upstream.Evidence{NotSent: true}, upstream.Failed, ledger.VerdictNotSent},
		"refused before processing":   {upstream.Evidence{Refused: true}, upstream.Failed, ledger.VerdictNotSent},
		"uncertain":                   {upstream.Evidence{}, upstream.Uncertain, ledger.VerdictUncertain},
		"an unknown kind is not told": {head, upstream.VerdictKind(99), ledger.VerdictUncertain},
	} {
		if got := recorded(tc.ev, tc.kind); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
