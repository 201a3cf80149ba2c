package data_test

import (
	"strings"
	"testing"

	"keep-proxy/internal/fakes/data"
)

func TestWhatYAMLCutsAtACommaIsRefused(t *testing.T) {
	t.Parallel()
	const notes = "fake: notes\nroutes:\n  - on: POST /notes\n    create: note\n    id: ID\n    answer: {json: {made: VALUE}}\n"
	for name, c := range map[string]struct{ id, value, line string }{
		"an expression without quotes": {`"{n}"`, "{cel: merge(object, json)}", "line 6"},
		"an expression in quotes":      {`"{n}"`, `{cel: "merge(object, json)"}`, ""},
		"a text without quotes":        {"{n}", "1", "line 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := data.Load([]byte(strings.NewReplacer("ID", c.id, "VALUE", c.value).Replace(notes)))
			if c.line == "" && err != nil || c.line != "" && (err == nil || !strings.Contains(err.Error(), c.line)) {
				t.Errorf("%v: want %q", err, c.line)
			}
		})
	}
}
