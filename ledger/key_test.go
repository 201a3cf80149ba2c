package ledger

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestEveryPartChangesTheKey(t *testing.T) {
	t.Parallel()
	base := vectors[0].parts
	seen := map[Key]string{}
	for name, change := range map[string]func(*KeyParts){
		"nothing":              func(*KeyParts) {},
		"the workflow":         func(p *KeyParts) { p.Workflow += "x" },
		"the item":             func(p *KeyParts) { p.Item += "x" },
		"the attempt":          func(p *KeyParts) { p.Attempt++ },
		"the connector":        func(p *KeyParts) { p.Connector += "x" },
		"the operation":        func(p *KeyParts) { p.Operation += "x" },
		"the account":          func(p *KeyParts) { p.Account += "x" },
		"the host group":       func(p *KeyParts) { p.HostGroup += "x" },
		"a host variable":      func(p *KeyParts) { p.HostVars = map[string]string{"region": "eu"} },
		"an identity name":     func(p *KeyParts) { p.Identity = map[string]string{"ref": `"INV-17"`} },
		"an identity value":    func(p *KeyParts) { p.Identity = map[string]string{"reference": `"INV-18"`} },
		"text instead of null": func(p *KeyParts) { p.Identity = map[string]string{"reference": `null`} },
		"the subkey":           func(p *KeyParts) { p.Subkey = "x" },
		"a border moved":       func(p *KeyParts) { p.Workflow, p.Item = "payoutsinvoice", "-17" },
	} {
		p := base
		change(&p)
		k, err := MutationKey(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, ok := seen[k]; ok {
			t.Errorf("%s gives the same key as %s", name, other)
		}
		seen[k] = name
	}
}

func TestSpellingDoesNotChangeTheKey(t *testing.T) {
	t.Parallel()
	one, two := vectors[2].parts, vectors[2].parts
	two.Identity = map[string]string{"lines": `[{"a":1.5,"b":1}]`, "order": " 9007199254740993 "}
	a, err := MutationKey(one)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := MutationKey(two); err != nil || a != b {
		t.Errorf("the same values spelt differently: %v, keys %s and %s", err, a, b)
	}
	two.Identity["order"] = "9007199254740992"
	if b, _ := MutationKey(two); a == b {
		t.Error("integers beyond 2^53 are rounded together")
	}
}

func TestNamesAreOrderedByTheirUTF16(t *testing.T) {
	t.Parallel()
	p := KeyParts{
		Workflow: "w", Item: "i", Attempt: 1, Connector: "c", Operation: "o", HostGroup: "h",
		Identity: map[string]string{"\uffff": "1", "\U00010000": "2"},
	}
	want := sha256.Sum256([]byte(`["keep/v1","w","i",1,"c","o","",["h",{}],{"` + "\U00010000" + `":2,"` + "\uffff" + `":1},""]`))
	if got, err := MutationKey(p); err != nil || got != want {
		t.Errorf("key %s, %v; want %s", got, err, Key(want))
	}
}

// keyOfArray computes the key as docs/mutation-key.md says it: the array as JSON,
// brought into canonical form as a whole.
func keyOfArray(t *rapid.T, p KeyParts) (Key, bool) {
	identity := map[string]jsontext.Value{}
	for name, value := range p.Identity {
		identity[name] = jsontext.Value(value)
	}
	array, err := json.Marshal([]any{
		KeyFormat, p.Workflow, p.Item, p.Attempt, p.Connector, p.Operation, p.Account,
		[]any{p.HostGroup, p.HostVars}, identity, p.Subkey,
	})
	if err != nil {
		return Key{}, false
	}
	value := jsontext.Value(array)
	if err := value.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		t.Fatalf("%s: %v", array, err)
	}
	return sha256.Sum256(value), true
}

func TestKeyIsThatOfTheWholeArray(t *testing.T) {
	t.Parallel()
	// Names and values on both sides of where UTF-16 and UTF-8 order differently,
	// of what JSON escapes, and of what is no UTF-8.
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\"\\/<&\x00\x1f\u007f\u2028é\ud7ff\ue000\uffff\U00010000\U0001f600")), 0, 4, -1)
	broken := rapid.SampledFrom([]string{"\xff", "\xed\xa0\x80"})
	name := rapid.OneOf(text, text, text, broken)
	value := rapid.OneOf(
		rapid.SampledFrom([]string{`null`, `-0`, `1e2`, `9007199254740993`, ` [1, {"b":1.50,"a":"\u00e9"}]`, `"\ud83d\ude00"`, `{"\ue000":1,"😀":2}`, `{`, ``}),
		rapid.Map(text, func(s string) string {
			quoted, _ := jsontext.AppendQuote(nil, s)
			return string(quoted)
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		p := KeyParts{
			Workflow: name.Draw(t, "workflow"), Item: text.Draw(t, "item"), Attempt: rapid.IntRange(1, 1000).Draw(t, "attempt"),
			Connector: text.Draw(t, "connector"), Operation: text.Draw(t, "operation"), Account: text.Draw(t, "account"),
			HostGroup: text.Draw(t, "host group"), HostVars: rapid.MapOfN(text, name, 0, 3).Draw(t, "host variables"),
			Identity: rapid.MapOfN(text, value, 0, 4).Draw(t, "identity"), Subkey: text.Draw(t, "subkey"),
		}
		want, ok := keyOfArray(t, p)
		got, err := MutationKey(p)
		if (err == nil) != ok || got != want {
			t.Errorf("key %s, %v; want %s (can be computed: %t)", got, err, want, ok)
		}
	})
}

func TestMutationKeyRefusesWhatParsersReadDifferently(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "{", `{"a":1,"a":2}`, `"a" "b"`, "\"\xff\"", "NaN"} {
		p := vectors[0].parts
		p.Identity = map[string]string{"reference": value}
		if k, err := MutationKey(p); err == nil || k != (Key{}) {
			t.Errorf("identity %q gives key %s", value, k)
		}
	}
}

func TestVendorKeyShapes(t *testing.T) {
	t.Parallel()
	k, err := MutationKey(vectors[0].parts)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, format string
		max, length  int
		fails        string
	}{
		{"a UUID", KeyUUID, 0, 36, ""},
		{"a UUID of version 4", KeyUUID4, 36, 36, ""},
		{"hex", KeyHex, 0, 64, ""},
		{"a cut hex key", KeyHex, 40, 40, ""},
		{"the shortest key", KeyToken, 20, 20, ""},
		{"too short to be unlikely to collide", KeyToken, 19, 0, "too few"},
		{"a UUID can't be cut", KeyUUID, 35, 0, "too few"},
		{"an unknown format", "ulid", 0, 0, "unknown format"},
		{"no format", "", 0, 0, "unknown format"},
	} {
		got, err := VendorKey(k, 1, c.format, c.max)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || got != "" {
				t.Errorf("%s: got %q, %v; want an error with %q", c.name, got, err, c.fails)
			}
			continue
		}
		if err != nil || len(got) != c.length {
			t.Errorf("%s: got %q, %v; want %d characters", c.name, got, err, c.length)
		}
		if next, _ := VendorKey(k, 2, c.format, c.max); next == got {
			t.Errorf("%s: generations share the key %q", c.name, got)
		}
	}
}

func TestKeyText(t *testing.T) {
	t.Parallel()
	k, err := MutationKey(vectors[0].parts)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := k.MarshalText()
	var back Key
	if err := back.UnmarshalText(text); err != nil || back != k {
		t.Errorf("%s reads back as %s, %v", text, back, err)
	}
	for _, bad := range []string{"", "00", strings.Repeat("g", 64), string(text) + "00"} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q reads as a key", bad)
		}
	}
}

func BenchmarkMutationKey(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := MutationKey(vectors[0].parts); err != nil {
			b.Fatal(err)
		}
	}
}
