package admin

import (
	"slices"
	"testing"
)

func TestRoleMay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		has  Role
		may  []Role
		want bool
	}{
		{RoleViewer, readers, true}, {RoleViewer, hosts, false}, {RoleViewer, operators, false}, {RoleViewer, everybody, true},
		{RoleHost, readers, false}, {RoleHost, hosts, true}, {RoleHost, operators, false}, {RoleHost, everybody, true},
		{RoleOperator, readers, true}, {RoleOperator, hosts, true}, {RoleOperator, operators, true}, {RoleOperator, everybody, true},
		{"", everybody, false}, {"king", everybody, false}, {"king", []Role{"king"}, false}, {"", []Role{""}, false},
		{RoleOperator, nil, false},
	} {
		if got := c.has.may(c.may); got != c.want {
			t.Errorf("a %q may do what %v may: %t", c.has, c.may, got)
		}
	}
}

// TestWhatEachRoleMay is the whole of what tokens are good for: a route that comes later
// must be put here on purpose.
func TestWhatEachRoleMay(t *testing.T) {
	t.Parallel()
	want := map[Role][]string{
		RoleHost: {
			"openRun", "listRuns", "showRun", "heartbeat", "finishRun", "endRun", "showEnvironment", "listMutations", "showMutation",
		},
		RoleViewer: {
			"listRuns", "showRun", "showEnvironment", "listItems", "showItem", "listMutations", "showMutation", "sendBody",
			"listEscalations", "listObligations", "listImpact", "showStatus", "sendEvents", "followRequests", "explain",
		},
	}
	for role, names := range want {
		var got []string
		for _, rt := range routes() {
			if rt.id != "" && rt.guarded() && role.may(rt.roles) {
				got = append(got, rt.id)
			}
		}
		slices.Sort(got)
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Errorf("a %s may use\n%v, want\n%v", role, got, names)
		}
	}
	for _, rt := range routes() {
		if rt.guarded() && !RoleOperator.may(rt.roles) {
			t.Errorf("%s %s: the operator may not", rt.method, rt.path)
		}
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	list, err := holders(Config{OperatorToken: "operator", Tokens: []Token{{"a", RoleViewer, digestOf("first")}, {"b", RoleHost, digestOf("second")}}})
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]caller{
		"operator": {operatorName, RoleOperator}, "first": {"a", RoleViewer}, "second": {"b", RoleHost},
	} {
		if got, ok := identify(list, token); !ok || got != want {
			t.Errorf("%s: %+v, %t; want %+v", token, got, ok, want)
		}
	}
	for _, token := range []string{"", "third", "FIRST", "first ", digestOf("first")} {
		if got, ok := identify(list, token); ok || got != (caller{}) {
			t.Errorf("%q is taken for %+v", token, got)
		}
	}
}
