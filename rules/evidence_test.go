package rules

import (
	"strings"
	"testing"
	"time"
)

func TestEvidenceIsKept(t *testing.T) {
	t.Parallel()
	set, findings := Load([]File{{Data: []byte(withOperation(
		"evidence: [{claim: keys live a day, url: 'https://x.test/', quote: 24 hours, date: 2026-01-31, status: reported}]"))}}, nil, Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	want := Evidence{"keys live a day", "https://x.test/", "24 hours", time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), EvidenceReported}
	if got := set.Connectors()[0].Operations[0].Evidence; len(got) != 1 || got[0] != want {
		t.Errorf("got %+v", got)
	}
}

func TestEvidenceThatShowsNothingIsRefused(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"no status":         "{claim: c}",
		"no claim":          "{status: unverified}",
		"no quote":          "{claim: c, url: u, date: 2026-01-31, status: verified}",
		"no date":           "{claim: c, url: u, quote: q, status: verified}",
		"a date of a kind":  "{claim: c, url: u, quote: q, date: 31.1.2026, status: verified}",
		"a quote of 21":     "{claim: c, url: u, quote: '" + strings.Repeat("word ", 21) + "', date: 2026-01-31, status: verified}",
		"another status":    "{claim: c, status: certain}",
		"one of two proofs": "{claim: c, quote: q, date: 2026-01-31, status: reported}",
	} {
		if set, _ := Load([]File{{Data: []byte(withOperation("evidence: [" + line + "]"))}}, nil, Defaults{}); set != nil {
			t.Errorf("%s: %s loads", name, line)
		}
	}
}
