package ledger

import (
	"strings"
	"testing"
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
