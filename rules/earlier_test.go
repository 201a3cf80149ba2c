package rules

import (
	"strings"
	"testing"
)

// Of a version for other hosts nothing is asked or derived, unless the file says that it was its own.
func TestAVersionConcernsWhatItsHostsCover(t *testing.T) {
	t.Parallel()
	load := func(head, hosts string) *Connector {
		c, findings := LoadPinned([]byte(strings.NewReplacer("connector: test", head, "[api.test]", "["+hosts+"]").Replace(withOperation())), nil, Defaults{})
		if c == nil {
			t.Fatal(findings)
		}
		return c
	}
	req := request(t, "POST https://api.test/things", `{"name":"a"}`)
	now, heir := load("connector: test", "api.test"), load("connector: test\nwas: old", "api.test")
	for name, c := range map[string]struct {
		now, then *Connector
		hosts     string
		want      bool
	}{
		"another connector for the host":    {now, load("connector: old", "api.test"), OwnHosts, true},
		"another connector for others":      {now, load("connector: old", "old.test"), OwnHosts, false},
		"for others by the settings":        {now, load("connector: old", "api.test"), "old.test", false},
		"for others, and now's file was it": {heir, load("connector: old", "old.test"), OwnHosts, true},
		"its own for others":                {now, load("connector: test", "old.test"), OwnHosts, true},
	} {
		if got, err := c.then.Concerns(c.now, req, c.hosts); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Which variables a host had that fits no more can't be told.
func TestVariablesOfOtherHostsArentKnown(t *testing.T) {
	t.Parallel()
	load := func(head, hosts string) *Operation {
		text := strings.NewReplacer("connector: test", head, "[api.test]", "["+hosts+"]").Replace(withOperation())
		c, findings := LoadPinned([]byte(text), nil, Defaults{})
		if c == nil {
			t.Fatal(findings)
		}
		return c.Operations[0]
	}
	req := request(t, "POST https://acme.new.test/things", `{"name":"a"}`)
	now := load("connector: own\nwas: test", "'{shop}.new.test'")
	for name, c := range map[string]struct {
		hosts, vars string
		unsure      bool
	}{
		"variables":           {"'{shop}.old.test'", "", true},
		"none":                {"old.test", "", false},
		"with and without":    {"'{shop}.old.test', old.test", "", true},
		"the hosts of now":    {"'{shop}.new.test'", "acme", false},
		"others for the host": {"'{a}.{b}.test'", "", false},
	} {
		got, err := now.Under(load("connector: test", c.hosts), OwnHosts, req, true)
		if err != nil || (got.Unsure != "") != c.unsure || (got.Derived == nil) != c.unsure || got.Derived != nil && got.HostVars["shop"] != c.vars {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
