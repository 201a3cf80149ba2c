package rules

import (
	"strings"
	"testing"
)

func TestParsePlace(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"json.a", "json.a.b", "json.a[*]", "json.a[3].c", "form['a[b]']", `form["it's"]`, "json['a.b'][*].c", "path.x"} {
		p, err := parsePlace(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if p.source != source || len(p.steps) == 0 {
			t.Errorf("%s became %+v", source, p)
		}
	}
	bad := []struct{ source, part string }{
		{"", "begins with a name"}, {"a b.c", "begins with a name"}, {"json.", "no plain name"}, {"json.a-b", "write it as ['a-b']"},
		{"json[", "no step"}, {"json[a]", "neither [*]"}, {"json[-1]", "neither [*]"}, {"json['a", "not closed"}, {"json[1", "not closed"},
		{"json.a]b", "no plain name"}, {"json.a[*]b", "no step"},
	}
	for _, tc := range bad {
		if _, err := parsePlace(tc.source); err == nil || !strings.Contains(err.Error(), tc.part) {
			t.Errorf("%q: error %v, want one about %q", tc.source, err, tc.part)
		}
	}
}

func TestPlacesTakeValuesOut(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, in string
		places   []string
		want     string
	}{
		{"a member", `{"a":1,"b":2}`, []string{"json.a"}, `{"b":2}`},
		{"a member that isn't there", `{"b":2}`, []string{"json.a"}, `{"b":2}`},
		{"a member below", `{"m":{"a":1,"b":2}}`, []string{"json.m.a"}, `{"m":{"b":2}}`},
		{"a member of every element", `{"l":[{"a":1,"b":2},{"a":3}]}`, []string{"json.l[*].a"}, `{"l":[{"b":2},{}]}`},
		{"one element", `{"l":[1,2,3]}`, []string{"json.l[1]"}, `{"l":[1,3]}`},
		{"one element's member, and another of all", `[{"a":1,"b":2,"c":3},{"a":1,"b":2,"c":3}]`, []string{"json[0].a", "json[*].b"}, `[{"c":3},{"a":1,"c":3}]`},
		{"all elements are the list itself", `{"l":[1,2],"b":2}`, []string{"json.l[*]"}, `{"b":2}`},
		{"an empty list too", `{"l":[],"b":2}`, []string{"json.l[*]"}, `{"b":2}`},
		{"what is no list stays", `{"l":"x","b":2}`, []string{"json.l[*]"}, `{"b":2,"l":"x"}`},
		{"two places", `{"a":1,"b":{"c":1,"d":2}}`, []string{"json.a", "json.b.c"}, `{"b":{"d":2}}`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			// Half of the places in each of two masks must do the same.
			var all, first, second placed
			for i, source := range tc.places {
				p, err := parsePlace(source)
				if err != nil {
					t.Fatal(err)
				}
				all.add(p)
				if i%2 == 0 {
					first.add(p)
				} else {
					second.add(p)
				}
			}
			v, err := parseJSON([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(appendCanonical(nil, v, all.json)); got != tc.want {
				t.Errorf("one mask: %s, want %s", got, tc.want)
			}
			if got := string(appendCanonical(nil, v, first.tree().with(second.tree()))); got != tc.want {
				t.Errorf("two masks: %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPlaceCoversWhatItCouldName(t *testing.T) {
	t.Parallel()
	cases := []struct {
		secret, read string
		want         bool
	}{
		{"json.card", "json.card", true},
		{"json.card", "json.card.number", true},
		{"json.card.number", "json.card", true},
		{"json.card", "json", true},
		{"json.cards[*].number", "json.cards[0].number", true},
		{"json.card", "json.cart", false},
		{"json.card", "form.card", false},
		{"json.cards[0]", "json.cards[1]", false},
	}
	for _, tc := range cases {
		p, err := parsePlace(tc.secret)
		if err != nil {
			t.Fatal(err)
		}
		r, err := parsePlace(tc.read)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.covers(r.root, r.steps); got != tc.want {
			t.Errorf("%s covers %s: %v, want %v", tc.secret, tc.read, got, tc.want)
		}
	}
}
