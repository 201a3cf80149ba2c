package app

import (
	"slices"
	"strings"
	"testing"

	"keep-proxy/config"
)

// What is reached past the proxy leaves no record.
func TestNoTargetPastTheProxyIsAConnectorsHost(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Connectors.Bundled = config.Bundled{Names: []string{"webhook", "stripe"}}
	c.Connectors.Settings = []config.ConnectorSettings{{Connector: "webhook", Hosts: []string{"hooks.test", "{x}.hooks.test:8443"}}}
	for targets, want := range map[string]string{
		"db.test:5432 hooks.test:5432":               "",
		"db.test:5432 api.stripe.com:443":            "isolate.reach[1] api.stripe.com:443 stripe",
		"api.stripe.com:80":                          "isolate.reach[0] api.stripe.com:80 stripe",
		"hooks.test:443 db.test:1 a.hooks.test:8443": "isolate.reach[0] hooks.test:443 webhook, isolate.reach[2] a.hooks.test:8443 webhook",
	} {
		c.Isolate.Reach = strings.Fields(targets)
		set, findings, err := LoadRules(c, true)
		if err != nil || (set == nil) != (want != "") {
			t.Fatalf("%s: loads %t, %v, %v; want %q", targets, set != nil, findings, err, want)
		}
		var got []string
		for _, f := range findings {
			if f.Code == "reach" {
				got = append(got, f.Key+" "+f.Value+" "+f.Problem[strings.LastIndex(f.Problem, " ")+1:])
			}
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", targets, got, want)
		}
	}
}
