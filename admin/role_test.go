package admin

import "testing"

func TestRoleMay(t *testing.T) {
	t.Parallel()
	roles := []Role{RoleNone, "king", RoleViewer, RoleHost, RoleOperator}
	allowed := map[[2]Role]bool{
		{RoleViewer, RoleViewer}: true, {RoleHost, RoleViewer}: true, {RoleOperator, RoleViewer}: true,
		{RoleHost, RoleHost}: true, {RoleOperator, RoleHost}: true, {RoleOperator, RoleOperator}: true,
	}
	for _, has := range roles {
		for _, need := range roles {
			if got := has.may(need); got != allowed[[2]Role{has, need}] {
				t.Errorf("a %q may do what needs %q: %t", has, need, got)
			}
		}
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	list := holders(Config{OperatorToken: "operator", Tokens: []Token{{"a", RoleViewer, tokenDigest("first")}, {"b", RoleHost, tokenDigest("second")}}})
	for token, want := range map[string]caller{
		"operator": {operatorName, RoleOperator}, "first": {"a", RoleViewer}, "second": {"b", RoleHost},
	} {
		if got, ok := identify(list, token); !ok || got != want {
			t.Errorf("%s: %+v, %t; want %+v", token, got, ok, want)
		}
	}
	for _, token := range []string{"", "third", "FIRST", "first ", tokenDigest("first")} {
		if got, ok := identify(list, token); ok || got != (caller{}) {
			t.Errorf("%q is taken for %+v", token, got)
		}
	}
}

func TestKeyedLock(t *testing.T) {
	t.Parallel()
	var l keyedLock
	unlock := l.lock("a")
	l.lock("b")()
	entered := make(chan struct{})
	go func() {
		defer close(entered)
		l.lock("a")()
	}()
	select {
	case <-entered:
		t.Error("two hold one key")
	default:
	}
	unlock()
	<-entered
	if len(l.inUse) != 0 {
		t.Errorf("%d keys are kept that nobody uses", len(l.inUse))
	}
}
