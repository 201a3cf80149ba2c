package config

import (
	"reflect"
	"testing"
)

func TestARejectionPointsAtTheFirstKeyThatWasGiven(t *testing.T) {
	t.Parallel()
	f := &fault{"wrong", "mend it"}
	cases := []struct {
		name    string
		origins map[string]origin
		broken  string
		keys    []string
		want    []Problem
	}{
		{"the first key was given", map[string]origin{"a.x": {"f", 1, 2, "v"}, "b": {"f", 3, 4, "w"}}, "", []string{"a.x", "b"},
			[]Problem{{"f", 1, 2, "a.x", "v", "wrong", "mend it"}}},
		{"only the second was", map[string]origin{"b": {"f", 3, 4, "w"}}, "", []string{"a.x", "b"},
			[]Problem{{"f", 3, 4, "b", "w", "wrong", "mend it"}}},
		{"a section is no origin of a key that it does not give", map[string]origin{"a": {"f", 1, 2, ""}, "b": {"f", 3, 4, "w"}}, "", []string{"a.x", "b"},
			[]Problem{{"f", 3, 4, "b", "w", "wrong", "mend it"}}},
		{"an entry of a list is one", map[string]origin{"l[0]": {"f", 5, 6, ""}}, "", []string{"l[0].x"},
			[]Problem{{"f", 5, 6, "l[0].x", "", "wrong", "mend it"}}},
		{"so is a list", map[string]origin{"l": {"f", 5, 6, ""}}, "", []string{"l[0]"},
			[]Problem{{"f", 5, 6, "l[0]", "", "wrong", "mend it"}}},
		{"none was given", nil, "", []string{"a.x", "b"},
			[]Problem{{"defaults", 0, 0, "a.x", "", "wrong", "mend it"}}},
		{"one could not be read", map[string]origin{"a.x": {"f", 1, 2, "v"}}, "b", []string{"a.x", "b"}, nil},
		{"an element could not be read", nil, "l[1]", []string{"l"}, nil},
		{"the list could not be read", nil, "l", []string{"l[0].x"}, nil},
		{"a key with the same beginning could not be read", nil, "list", []string{"l"},
			[]Problem{{"defaults", 0, 0, "l", "", "wrong", "mend it"}}},
		{"a credential is hidden", map[string]origin{"connectors.settings[0].credentials.value": {"f", 1, 2, "v"}}, "", []string{"connectors.settings[0].credentials.value"},
			[]Problem{{"f", 1, 2, "connectors.settings[0].credentials.value", Redacted, "wrong", "mend it"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newReport()
			if c.origins != nil {
				r.origins = c.origins
			}
			if c.broken != "" {
				r.broken[c.broken] = true
			}
			r.rejected(f, c.keys...)
			if !reflect.DeepEqual(r.problems, c.want) {
				t.Errorf("problems %+v\nwant     %+v", r.problems, c.want)
			}
		})
	}
}

func TestProblemsAreOrderedBySourceAndPlace(t *testing.T) {
	t.Parallel()
	var got []string
	for _, p := range sorted([]Problem{
		{Source: "--listen", Key: "7"},
		{Source: "environment", Key: "5"},
		{Source: "keep.yaml", Line: 2, Column: 9, Key: "3"},
		{Source: "environment", Key: "6"},
		{Source: "keep.yaml", Line: 2, Column: 1, Key: "2"},
		{Source: "defaults", Key: "4"},
		{Source: "keep.yaml", Line: 1, Column: 5, Key: "1"},
	}) {
		got = append(got, p.Key)
	}
	if want := []string{"1", "2", "3", "4", "5", "6", "7"}; !reflect.DeepEqual(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
}
