package rules

import (
	"strings"
	"testing"
)

func TestTextsAreShownToPeople(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, text, body, want string }{
		{"words", "nothing to insert", `{}`, "nothing to insert"},
		{"kinds of values", "{json.s} {json.i} {json.b} {json.n} {json.l} {json.o}", `{"s":"x","i":1.50,"b":true,"n":null,"l":[1],"o":{"b":1,"a":2}}`, `x 1.5 true null [1] {"a":2,"b":1}`},
		{"what is missing", "{json.gone} {json.?gone} {json.s.x}", `{"s":"x"}`, "? ? ?"},
		{"braces", "{{{json.s}}} }}{{", `{"s":"x"}`, "{x} }{"},
		{"braces and quotes in an expression", "{json['a}b']} {json['\"']} { {'a': json.s}.a }", `{"a}b":"1","s":"2","\"":"3"}`, "1 3 2"},
		{"control characters", "{json.s}", `{"s":"a\u001b[31m\nb\u202ec"}`, "a�[31m b�c"},
		{"ambiguity", "{json.s}{method}", `{"s":1,"s":2}`, "?POST"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text, err := compileText(tc.text, inRecord)
			if err != nil {
				t.Fatal(err)
			}
			got := text.show(&scope{req: request(t, "POST https://api.test/", tc.body)}, func(*expr) bool { return false })
			if got != tc.want {
				t.Errorf("shows %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLongValuesAreCut(t *testing.T) {
	t.Parallel()
	got := printable(strings.Repeat("é", 500))
	if want := strings.Repeat("é", 199) + "…"; got != want {
		t.Errorf("%d characters, want 200", len([]rune(got)))
	}
}

func TestDescribeAndManualCheckOfARecord(t *testing.T) {
	t.Parallel()
	_, op := operation(t, `
  - name: make
    match: {method: POST, path: "/things/{kind}"}
    effect: mutation
    describe: "Make {path.kind} for {account} ({mutation.marker})"
    manual_check: "Is {mutation.vendor_key} there since {string(mutation.claimed_at)}?"
    identity: {kind: path.kind}
    reconcile: [{none: why}]
`)
	env := Env{Request: request(t, "POST https://api.test/things/a%20b", ""), Mutation: sample(), Account: "acc"}
	if got, want := op.Describe(env), "Make a b for acc ("+CaseMarker+")"; got != want {
		t.Errorf("Describe = %q, want %q", got, want)
	}
	if got, want := op.ManualCheckText(env), "Is "+CaseVendorKey+" there since "+CaseClaimedAt+"?"; got != want {
		t.Errorf("ManualCheckText = %q, want %q", got, want)
	}
	_, plain := operation(t, simpleMutation)
	plain.manualCheck = nil
	if plain.Describe(env) != "make" || plain.ManualCheckText(env) != "" {
		t.Errorf("without texts: %q, %q", plain.Describe(env), plain.ManualCheckText(env))
	}
}
