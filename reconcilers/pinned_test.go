package reconcilers

import (
	"context"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// A stored version of a rule is asked under the hosts and settings that are in force now: another
// load of it makes the one of before worthless.
func TestAPinnedRuleIsThatOfTheLatestLoad(t *testing.T) {
	t.Parallel()
	loaded := &rules.Connector{Head: rules.Head{Hash: "h"}}
	p := &pinned{load: func(context.Context, string) (*rules.Connector, error) { return loaded, nil }}
	set := func() *rules.Set {
		t.Helper()
		s, err := p.set(t.Context(), &ledger.Mutation{Intent: ledger.Intent{ConnectorHash: "h"}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := set()
	if set() != before {
		t.Error("it is made anew for each try")
	}
	loaded = &rules.Connector{Head: rules.Head{Hash: "h"}}
	if now := set(); now == before {
		t.Error("after another load it is the set of before")
	}
}
