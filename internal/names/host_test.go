package names_test

import (
	"strings"
	"testing"

	"keep-proxy/internal/names"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ target, fault string }{
		"a name":                {"db.internal:5432", ""},
		"a name of one label":   {"redis:6379", ""},
		"this machine":          {"localhost:1", ""},
		"upper case":            {"DB.Internal:65535", ""},
		"an IPv4 address":       {"10.0.0.1:5432", ""},
		"an IPv6 address":       {"[2001:db8::1]:5432", ""},
		"an underscore":         {"my_db:5432", ""},
		"nothing":               {"", "not host:port"},
		"no port":               {"db.internal", "not host:port"},
		"a socket":              {"unix:/run/db.sock", "port"},
		"a scheme":              {"tcp://db.internal:5432", "not host:port"},
		"an empty port":         {"db.internal:", "port"},
		"port zero":             {"db.internal:0", "port"},
		"a port over the most":  {"db.internal:65536", "port"},
		"a service's name":      {"db.internal:postgres", "port"},
		"a leading zero":        {"db.internal:05432", "port"},
		"a signed port":         {"db.internal:+5432", "port"},
		"no host":               {":5432", "neither"},
		"a wildcard":            {"*.internal:5432", "neither"},
		"everything":            {"*:5432", "neither"},
		"a prefix":              {"10.0.0.0/8:5432", "neither"},
		"user information":      {"me@db.internal:5432", "neither"},
		"a trailing dot":        {"db.internal.:5432", "neither"},
		"a mistyped address":    {"10.0.0:5432", "neither"},
		"IPv6 without brackets": {"2001:db8::1:5432", "not host:port"},
		"a name in brackets":    {"[db.internal]:5432", "neither"},
		"IPv4 in brackets":      {"[10.0.0.1]:5432", "neither"},
		"IPv4 as IPv6":          {"[::ffff:10.0.0.1]:5432", "two ways"},
		"a zone":                {"[fe80::1%eth0]:5432", "two ways"},
		"every address":         {"0.0.0.0:5432", "nobody can connect"},
		"every IPv6 address":    {"[::]:5432", "nobody can connect"},
		"a space":               {"db internal:5432", "neither"},
		"a line break":          {"db\ninternal:5432", "neither"},
		"a long label":          {strings.Repeat("a", 64) + ":5432", "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			what, how := names.TargetFault(c.target)
			if (what == "") != (c.fault == "") || !strings.Contains(what, c.fault) || (what == "") != (how == "") {
				t.Errorf("%q: %q, %q; want a fault with %q", c.target, what, how, c.fault)
			}
		})
	}
}
