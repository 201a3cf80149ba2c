package dispatch

import (
	"strings"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/rules"
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

// Whoever signs a request sends secrets that the request doesn't hold.
func TestWhatWasSentBesideTheRequestIsNotKept(t *testing.T) {
	t.Parallel()
	const token = "a-session-token"
	d, s := Dispatcher{}, Sending{Operation: &rules.Operation{}, Limit: 100, Answer: &upstream.Answer{
		Status: 400, ContentLength: 10, Body: strings.NewReader("<Token-0/>"), Secrets: []string{token},
	}}
	if d.Read(t.Context(), &s); !s.Secrets.In("<Token-0>" + token + "</Token-0>") {
		t.Error("the token would be")
	}
}
