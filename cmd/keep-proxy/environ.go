package main

import (
	"maps"
	"slices"
	"strings"

	"keep-proxy/config"
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
		name, _, _ := strings.Cut(line, "=")
		if _, replaced := run[name]; replaced || slices.Contains(secrets, name) {
			continue
		}
		out = append(out, line)
	}
	for _, name := range slices.Sorted(maps.Keys(run)) {
		out = append(out, name+"="+run[name])
	}
	return out
}
