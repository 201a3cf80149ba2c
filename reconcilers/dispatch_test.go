package reconcilers

import (
	"slices"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

func TestSeenIsRetryUnlessKnown(t *testing.T) {
	t.Parallel()
	for in, want := range map[rules.Seen]ledger.Seen{
		rules.SeenRetry: ledger.SeenRetry, rules.SeenApplied: ledger.SeenApplied, rules.SeenAbsent: ledger.SeenAbsent,
		rules.SeenDuplicate: ledger.SeenDuplicate, rules.Seen(99): ledger.SeenRetry,
	} {
		if got := seen(in); got != want {
			t.Errorf("%v: got %s, want %s", in, got, want)
		}
	}
}

func TestOrderOfStrategies(t *testing.T) {
	t.Parallel()
	one, two := &rules.Probe{}, &rules.Probe{}
	list := []rules.Strategy{
		{Kind: rules.StrategyProbe, Probe: one}, {Kind: "unknown"}, {Kind: rules.StrategyResend},
		{Kind: rules.StrategyProbe, Probe: two}, {Kind: rules.StrategyNone, Why: "why"},
	}
	probed := ledger.Observation{Strategy: "probe"}
	for name, tc := range map[string]struct {
		seen    []ledger.Observation
		dropped int
		want    []rules.Strategy
	}{
		"resend first, none last, what is unknown not at all": {nil, 0, []rules.Strategy{list[2], list[0], list[3], list[4]}},
		"probes take turns":                {[]ledger.Observation{probed, {Strategy: "prepare"}}, 0, []rules.Strategy{list[2], list[3], list[0], list[4]}},
		"and the first has its turn again": {[]ledger.Observation{probed, probed}, 0, []rules.Strategy{list[2], list[0], list[3], list[4]}},
		"with one that is listed no more":  {[]ledger.Observation{probed, probed}, 1, []rules.Strategy{list[2], list[3], list[0], list[4]}},
	} {
		if got := order(list, &ledger.Mutation{Asking: ledger.Asking{Observations: tc.seen, Dropped: tc.dropped}}); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
	if list[0].Probe != one || list[3].Probe != two {
		t.Error("the rule's own list was changed")
	}
}
