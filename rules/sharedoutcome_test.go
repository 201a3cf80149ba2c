package rules

import (
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
)

// What an API says of all its calls is written once. An operation that knows better goes first.
func TestTheConnectorsOutcomesStandBehindTheOperations(t *testing.T) {
	t.Parallel()
	const shared = "outcome: [{when: response.status == 409, then: failed, class: transient}, {when: response.status == 418, then: applied}]\n"
	set := load(t, shared+withOperation("outcome: [{when: response.status == 409, then: uncertain}]"))
	op := set.Connectors()[0].Operations[0]
	for status, want := range map[int]verdict.OpinionKind{409: verdict.OpinionUncertain, 418: verdict.OpinionApplied, 500: verdict.OpinionNone} {
		if got := op.Judge(request(t, "POST https://api.test/things", "{}"), "", Mutation{}, answered(status, "{}")); got.Kind != want {
			t.Errorf("%d: %v, want %v", status, got.Kind, want)
		}
	}
	_, findings := Load([]File{{Name: "a.yaml", Data: []byte("outcome: [{otherwise: uncertain}]\n" + withOperation("describe: x"))}}, nil, Defaults{})
	if !strings.Contains(findings.Error(), "otherwise") {
		t.Errorf("otherwise for all operations loads: %v", findings)
	}
}
