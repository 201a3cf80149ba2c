package config

import (
	"strings"
	"testing"
)

func TestProblemsOfValues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxName+1)
	cases := []struct {
		name, yaml string
		want       []string
	}{
		{"no listener", "proxy: {listen: []}", []string{
			"keep.yaml:1:17: proxy.listen: no address to listen on; give at least one, such as 127.0.0.1:8080",
		}},
		{"the same listener twice", "proxy: {listen: [127.0.0.1:1, 127.0.0.1:1]}", []string{
			`keep.yaml:1:31: proxy.listen[1] = "127.0.0.1:1": given twice, first as proxy.listen[0]; remove one of them`,
		}},
		{"two listeners on free ports are two listeners", "proxy: {listen: [127.0.0.1:0, 127.0.0.1:0]}", nil},
		{"the admin API on the proxy's address", "admin: {listen: 127.0.0.1:8080}", []string{
			`keep.yaml:1:17: admin.listen = "127.0.0.1:8080": admin.listen and proxy.listen can't listen on one address; give each its own`,
		}},
		{"the proxy on the admin API's default address", "proxy: {listen: [127.0.0.1:8081]}", []string{
			"keep.yaml:1:17: proxy.listen: admin.listen and proxy.listen can't listen on one address; give each its own",
		}},
		{"the admin API on every interface", "admin: {listen: \"[::]:8081\"}", []string{
			`keep.yaml:1:17: admin.listen = "[::]:8081": without TLS the admin API answers on loopback alone; use 127.0.0.1:PORT, [::1]:PORT or unix:/path, or set admin.tls`,
		}},
		{"the admin API on a name that may be anywhere", "admin: {listen: admin.example:8081}", []string{
			`keep.yaml:1:17: admin.listen = "admin.example:8081": without TLS the admin API answers on loopback alone; use 127.0.0.1:PORT, [::1]:PORT or unix:/path, or set admin.tls`,
		}},
		{"the admin API on v6 loopback", "admin: {listen: \"[::1]:8081\"}", nil},
		{"the admin API on a socket", "admin: {listen: unix:/run/keep/admin.sock}", nil},
		{"a CA certificate without its key", "proxy: {ca: {cert_file: /ca.pem}}", []string{
			`keep.yaml:1:25: proxy.ca.cert_file = "/ca.pem": proxy.ca.key_file is missing; set both proxy.ca.cert_file and proxy.ca.key_file, or neither`,
		}},
		{"a bundle with the name of the trust store", "proxy: {ca: {bundle_out: /ca.p12}}", []string{
			`keep.yaml:1:26: proxy.ca.bundle_out = "/ca.p12": the trust store for Java gets this name; give the file another extension, such as .pem`,
		}},
		{"a CA key without its certificate", "proxy: {ca: {key_file: /ca.key}}", []string{
			`keep.yaml:1:24: proxy.ca.key_file = "/ca.key": proxy.ca.cert_file is missing; set both proxy.ca.cert_file and proxy.ca.key_file, or neither`,
		}},
		{"an unmanaged workflow without an item", "proxy: {unmanaged: {workflow: w}}", []string{
			`keep.yaml:1:31: proxy.unmanaged.workflow = "w": proxy.unmanaged.item is missing; set both proxy.unmanaged.workflow and proxy.unmanaged.item, or neither`,
		}},
		{"an unmanaged scope", "proxy: {unmanaged: {workflow: w, item: i}}", nil},
		{"an item's name that is too long", "proxy: {unmanaged: {workflow: w, item: " + long + "}}", []string{
			`keep.yaml:1:40: proxy.unmanaged.item = "` + long + `": longer than 256 bytes; shorten it`,
		}},
		{"a control character in a name", "proxy: {unmanaged: {workflow: w, item: \"a\\nb\"}}", []string{
			`keep.yaml:1:40: proxy.unmanaged.item = "a\nb": control characters are not allowed; remove them`,
		}},
		{"a hold beyond its bound", "proxy: {hold: 61m}", []string{
			`keep.yaml:1:15: proxy.hold = "61m": out of bounds; write a value from 0s to 1h`,
		}},
		{"a negative hold", "proxy: {hold: -1s}", []string{
			`keep.yaml:1:15: proxy.hold = "-1s": out of bounds; write a value from 0s to 1h`,
		}},
		{"a body bound of nothing", "proxy: {max_body: 0}", []string{
			`keep.yaml:1:19: proxy.max_body = "0": out of bounds; write a value from 1B to 1GiB`,
		}},
		{"a head bound that no request fits", "proxy: {max_head: 512B}", []string{
			`keep.yaml:1:19: proxy.max_head = "512B": out of bounds; write a value from 1KiB to 1MiB`,
		}},
		{"dialling for longer than the whole", "proxy: {timeouts: {dial: 20m}}", []string{
			`keep.yaml:1:26: proxy.timeouts.dial = "20m": proxy.timeouts.dial (20m) is more than proxy.timeouts.total (10m); lower the one or raise the other`,
		}},
		{"a whole that the default response exceeds", "proxy: {timeouts: {total: 30s}}", []string{
			`keep.yaml:1:27: proxy.timeouts.total = "30s": proxy.timeouts.response (1m40s) is more than proxy.timeouts.total (30s); lower the one or raise the other`,
		}},
		{"an unreadable whole spares what depends on it", "proxy: {timeouts: {dial: 20m, total: soon}}", []string{
			`keep.yaml:1:38: proxy.timeouts.total = "soon": not a duration; write a number and a unit (ms, s, m, h), such as 10s or 1h30m`,
		}},
		{"no time to dial", "proxy: {timeouts: {dial: 0s}}", []string{
			`keep.yaml:1:26: proxy.timeouts.dial = "0s": too small; write at least 1ms`,
		}},
		{"an id of other characters", "ledger: {id: \"a b\"}", []string{
			`keep.yaml:1:14: ledger.id = "a b": not a ledger's id; copy it from what serve prints, or from keep-proxy status`,
		}},
		{"a high-water file inside the ledger", "ledger: {dir: /data, high_water_file: /data/x/mark}", []string{
			`keep.yaml:1:39: ledger.high_water_file = "/data/x/mark": the file is inside the ledger's folder /data, so that a restored copy would bring it along; keep it on another disk or at least in another folder`,
		}},
		{"a high-water file beside the ledger", "ledger: {dir: /data, high_water_file: /data-mark}", nil},
		{"a high-water file whose name begins with dots", "ledger: {dir: /data, high_water_file: /data/..mark}", []string{
			`keep.yaml:1:39: ledger.high_water_file = "/data/..mark": the file is inside the ledger's folder /data, so that a restored copy would bring it along; keep it on another disk or at least in another folder`,
		}},
		{"no space kept free", "ledger: {min_free: 0B}", []string{
			`keep.yaml:1:20: ledger.min_free = "0B": too small; write at least 1MiB`,
		}},
		{"an engine of a later version", "ledger: {engine: postgres}", []string{
			`keep.yaml:1:18: ledger.engine = "postgres": not yet built: this version does not know what to do with postgres; use badger`,
		}},
		{"an unknown engine", "ledger: {engine: sqlite}", []string{
			`keep.yaml:1:18: ledger.engine = "sqlite": not a known value; use badger`,
		}},
		{"jitter above one", "reconcile: {jitter: 1.5}", []string{
			`keep.yaml:1:21: reconcile.jitter = "1.5": out of bounds; write a value from 0 to 1`,
		}},
		{"jitter that is no number", "reconcile: {jitter: .nan}", []string{
			`keep.yaml:1:21: reconcile.jitter = ".nan": not a number; write a decimal number such as 0.2`,
		}},
		{"a factor that shortens the wait", "reconcile: {factor: 0.5}", []string{
			`keep.yaml:1:21: reconcile.factor = "0.5": out of bounds; write a value from 1 to 10`,
		}},
		{"no settle", "reconcile: {settle: 0s}", []string{
			`keep.yaml:1:21: reconcile.settle = "0s": out of bounds; write a value from 1ms to 8760h`,
		}},
		{"a settle below the default is allowed", "reconcile: {settle: 1s, absent_spacing: 1ms, absent_confirmations: 1}", nil},
		{"no confirmation", "reconcile: {absent_confirmations: 0}", []string{
			`keep.yaml:1:35: reconcile.absent_confirmations = "0": out of bounds; write a value from 1 to 100`,
		}},
		{"a cap below the base", "reconcile: {base: 2m, cap: 1m}", []string{
			`keep.yaml:1:19: reconcile.base = "2m": reconcile.base (2m) is more than reconcile.cap (1m); lower the one or raise the other`,
		}},
		{"an end after seconds, for rules whose settle is short", "reconcile: {max_age: 20s}", nil},
		{"no time to ask at all", "reconcile: {max_age: 0s}", []string{
			`keep.yaml:1:22: reconcile.max_age = "0s": too small; write at least 1ms`,
		}},
		{"confirmations that would overflow", "reconcile: {absent_confirmations: 9000000000000000000, absent_spacing: 8760h, max_age: 1000000h}", []string{
			`keep.yaml:1:35: reconcile.absent_confirmations = "9000000000000000000": out of bounds; write a value from 1 to 100`,
		}},
		{"a run that ends at once", "runs: {ttl: 1ms}", []string{
			`keep.yaml:1:13: runs.ttl = "1ms": out of bounds; write a value from 1s to 8760h`,
		}},
		{"a target twice", "isolate: {reach: [db:1, DB:1]}", []string{
			`keep.yaml:1:25: isolate.reach[1] = "DB:1": given twice, first as isolate.reach[0]; remove one of them`,
		}},
		{"targets that differ in their port", "isolate: {reach: [db:1, db:2], required: true}", nil},
		{"an octal number", "runs: {retry_grace_tries: 010}", []string{
			`keep.yaml:1:27: runs.retry_grace_tries = "010": not a whole number; write decimal digits without a leading zero, such as 5`,
		}},
		{"an unknown level", "log: {level: loud}", []string{
			`keep.yaml:1:14: log.level = "loud": not a known value; use trace, debug, info, warn or error`,
		}},
		{"a boolean in words", "proxy: {egress: {deny_private: yes}}", []string{
			`keep.yaml:1:32: proxy.egress.deny_private = "yes": not a boolean; write true or false`,
		}},
		{"a home folder in a shell's words", "ledger: {dir: ~/keep}", []string{
			`keep.yaml:1:15: ledger.dir = "~/keep": ~ is a shell's abbreviation and is not expanded here; write the home folder in full`,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			compareLines(t, problems(t, Options{File: writeConfig(t, c.yaml), Environ: home}), c.want)
		})
	}
}

func TestShortBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		want string
	}{
		{10 * MiB, "10MiB"}, {0.5, "0.5"}, {3, "3"}, {year, "8760h"},
	} {
		if got := short(c.v); got != c.want {
			t.Errorf("short(%v) = %s, want %s", c.v, got, c.want)
		}
	}
}
