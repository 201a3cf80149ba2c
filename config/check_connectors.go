package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"keep-proxy/internal/strictyaml"
)

func checkConnectors(r *report, c *Config) {
	distinct(r, "connectors.dirs", c.Connectors.Dirs, nil)
	distinct(r, "connectors.bundled", c.Connectors.Bundled.Names, nil)
	for i, name := range c.Connectors.Bundled.Names {
		checkConnectorName(r, strictyaml.Index("connectors.bundled", i), name)
	}
	first := map[string]string{}
	for i, s := range c.Connectors.Settings {
		key := strictyaml.Index("connectors.settings", i)
		checkSettings(r, key, s, c.Proxy.Timeouts.Total)
		if earlier, twice := first[s.Connector]; twice && s.Connector != "" {
			r.rejected(&fault{"this connector has settings already, at " + earlier, "put all of them into one entry"}, key+".connector")
			continue
		}
		first[s.Connector] = key
	}
}

func checkSettings(r *report, key string, s ConnectorSettings, total time.Duration) {
	if s.Connector == "" {
		r.rejected(&fault{"the connector's name is missing", "add connector: NAME"}, key+".connector")
	} else {
		checkConnectorName(r, key+".connector", s.Connector)
	}
	distinct(r, key+".hosts", s.Hosts, nil)
	if s.Credentials != nil {
		checkCredentials(r, key+".credentials", s.Credentials)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Overrides)) {
		checkOverride(r, key+".overrides."+name, s.Overrides[name], total)
	}
}

func checkConnectorName(r *report, key, name string) {
	if name == "" || len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		r.rejected(&fault{"not a connector's name", "use lower-case letters, digits and -, as in the connector's file"}, key)
	}
}

func checkCredentials(r *report, key string, c *Credentials) {
	if c.Header == "" {
		r.rejected(&fault{"the header's name is missing", "add header: Authorization, or the name that the API expects"}, key+".header")
	}
	switch {
	case c.Value.IsZero() && len(c.Exec) == 0:
		r.rejected(&fault{"the value is missing", "add value: \"Bearer ${file:/absolute/path}\", or exec: [program]"}, key+".value")
	case !c.Value.IsZero() && len(c.Exec) > 0:
		r.rejected(&fault{"there is a value and a program that gives one", "keep value or exec"}, key+".exec")
	}
	if len(c.Exec) > 0 {
		between(r, key+".cache", c.Cache, time.Second, 24*time.Hour)
	}
	for _, name := range []string{"cache", "scheme"} {
		if _, given := r.origins[key+"."+name]; given && len(c.Exec) == 0 {
			r.rejected(&fault{name + " says nothing without exec", "leave it out"}, key+"."+name)
		}
	}
	for _, path := range c.Value.files() {
		if !filepath.IsAbs(path) {
			r.rejected(&fault{"${file:} takes an absolute path, not " + path, "write the path from / on"}, key+".value")
		}
	}
}

func checkOverride(r *report, key string, o Override, total time.Duration) {
	optional(r, key+".settle", o.Settle, time.Millisecond, year)
	optional(r, key+".absent_confirmations", o.AbsentConfirmations, 1, 100)
	optional(r, key+".absent_spacing", o.AbsentSpacing, time.Millisecond, year)
	optional(r, key+".max_dispatches", o.MaxDispatches, 1, 10)
	optional(r, key+".timeout", o.Timeout, time.Millisecond, 24*time.Hour)
	optional(r, key+".max_body", o.MaxBody, Byte, GiB)
	notMore(r, key+".timeout", o.Timeout, "proxy.timeouts.total", total)
}

// optional is between for a key that may be left out; one that is given as zero
// is out of bounds.
func optional[T time.Duration | Size | int](r *report, key string, v, lo, hi T) {
	if _, given := r.origins[key]; given {
		between(r, key, v, lo, hi)
	}
}

// defaultCredentialCache is shorter than tokens usually live.
const defaultCredentialCache = 5 * time.Minute

// fill sets what a credential of a program has by default; cached says that cache was given,
// perhaps as zero, which is no default.
func (c *Credentials) fill(cached bool) {
	if len(c.Exec) == 0 {
		return
	}
	if c.Header == "" {
		c.Header = "Authorization"
	}
	if c.Scheme == nil {
		scheme := ""
		if c.Header == "Authorization" {
			scheme = "Bearer"
		}
		c.Scheme = &scheme
	}
	if !cached {
		c.Cache = defaultCredentialCache
	}
}
