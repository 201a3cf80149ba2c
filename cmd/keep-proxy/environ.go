package main

import (
	"maps"
	"slices"
	"strings"

	"keep-proxy/config"
)

// passwordVariable is of the one key that is a secret and has a variable of its own, in which
// it may be written out. A command gets it with a reference to nothing: without any value
// the configuration would have a user without a password for what keep-proxy does there.
var (
	passwordVariable = config.EnvName("proxy.upstream_proxy.password")
	withheld         = "${env:WITHHELD_FROM_COMMANDS}"
)

// secretNames are the variables that configuration names as a secret's source.
func secretNames(c config.Config) []string {
	names := c.Proxy.UpstreamProxy.Password.EnvNames()
	for _, s := range c.Connectors.Settings {
		if s.Credentials != nil {
			names = append(names, s.Credentials.Value.EnvNames()...)
		}
	}
	for _, w := range c.Notify.Webhooks {
		names = append(names, w.URL.EnvNames()...)
		if w.Secret != nil {
			names = append(names, w.Secret.EnvNames()...)
		}
	}
	return names
}

// childEnvironment is the inherited environment without secrets, with the run's
// variables over it.
func childEnvironment(inherited []string, run map[string]string, secrets []string) []string {
	var out []string
	for _, line := range inherited {
		name, value, _ := strings.Cut(line, "=")
		if _, replaced := run[name]; replaced || slices.Contains(secrets, name) {
			continue
		}
		if name == passwordVariable && value != "" {
			line = name + "=" + withheld
		}
		out = append(out, line)
	}
	for _, name := range slices.Sorted(maps.Keys(run)) {
		out = append(out, name+"="+run[name])
	}
	return out
}
