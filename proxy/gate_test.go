package proxy

import (
	"testing"

	"keep-proxy/ledger"
)

func TestARunThatIsOverSaysWhyInWholeSentences(t *testing.T) {
	t.Parallel()
	const want = "This run is over (aborted): the upstream refused. Nothing was sent; what it does from now on has no effect."
	for _, reason := range []string{"the upstream refused", "the upstream refused."} {
		f := overRefusal(ledger.Admission{
			Problem: string(problemRunAborted),
			Run:     ledger.Run{State: ledger.RunAborted, Class: ledger.ClassLogic, Reason: reason},
		})
		if f.problem != problemRunAborted || f.class != ledger.ClassLogic || f.detail != want {
			t.Errorf("reason %q: %s (%s): %q", reason, f.problem, f.class, f.detail)
		}
	}
}
