package rules_test

import (
	"fmt"
	"os"
	"testing"

	"keep-proxy/rules"
)

// The hosts that a connector lists are one API, and no part of the key. Receivers of webhooks and
// servers of git are none: what was done at one of them must not be taken for what is asked of another.
func TestWhatIsSentToAnotherHostIsAnotherMutation(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct{ file, connector, path string }{
		"a webhook":  {"../connectors/webhook.yaml", "webhook", "/services/T0/B0/secret"},
		"a git push": {"../examples/git/git.yaml", "git", "/team/site.git/git-receive-pack"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(one.file)
			if err != nil {
				t.Fatal(err)
			}
			hosts := []string{"a.example", "b.example", "b.example:8443"}
			settings := []rules.Settings{{Connector: one.connector, Hosts: hosts}}
			set, findings := rules.Load([]rules.File{{Name: one.file, Data: data}}, settings, rules.Defaults{})
			if set == nil {
				t.Fatalf("findings:\n%v", findings)
			}
			identities := map[string]string{}
			for _, host := range hosts {
				req, refusal := rules.Rebuild("POST", "https://"+host+one.path, nil, []byte("hello"))
				if refusal != nil {
					t.Fatal(refusal)
				}
				m := set.Match(req)
				if m.Operation == nil {
					t.Fatalf("%s: no operation", host)
				}
				derived, refusal := m.Operation.Derive(req, m)
				if refusal != nil {
					t.Fatal(refusal)
				}
				identity := fmt.Sprintf("%s", derived.Identity)
				if other := identities[identity]; other != "" {
					t.Errorf("%s is answered with what was done at %s: %s", host, other, identity)
				}
				identities[identity] = host
			}
		})
	}
}
