package lint

import (
	"strings"
	"testing"
)

func TestWarningsCanBeAnswered(t *testing.T) {
	t.Parallel()
	const none = "on_no_result: -"
	for _, tc := range []struct {
		name, file string
		warned     bool
	}{
		{"nothing in place of a lost answer", withOperation(none), true},
		{"something in its place", withOperation(), false},
		{"answered for the operation", withOperation(none, "accept: [{no-result: a person reads the log}]"), false},
		{"answered for the connector", strings.Replace(withOperation(none), "\noperations:", "\naccept: {no-result: why}\noperations:", 1), false},
		{"another one answered", withOperation(none, "accept: {any-method: why}"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			found := ""
			for _, f := range check(t, tc.file) {
				found += f.Code + " " + f.Key + "; "
			}
			if strings.Contains(found, "no-result operations[0]; ") != tc.warned {
				t.Errorf("warned of %s", found)
			}
		})
	}
}
