package config

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"keep-proxy/internal/names"
	"keep-proxy/internal/strictyaml"
)

// maxName bounds the names that become part of a mutation's key.
const maxName = names.Max

const year = 365 * 24 * time.Hour

// TrustStore is the trust store for Java, which is beside a bundle of roots (CA.BundleOut).
func TrustStore(bundle string) string {
	return strings.TrimSuffix(bundle, filepath.Ext(bundle)) + ".p12"
}

// check adds a problem for every rule that c breaks.
func check(r *report, c *Config) {
	checkProxy(r, &c.Proxy)
	checkTimeouts(r, &c.Proxy.Timeouts)
	checkAdmin(r, c)
	checkLedger(r, &c.Ledger)
	checkReconcile(r, &c.Reconcile)
	checkRuns(r, &c.Runs)
	distinct(r, "isolate.reach", c.Isolate.Reach, nil)
	checkConnectors(r, c)
	checkNotify(r, c)
}

func checkProxy(r *report, p *Proxy) {
	if len(p.Listen) == 0 {
		r.rejected(&fault{"no address to listen on", "give at least one, such as 127.0.0.1:8080"}, "proxy.listen")
	}
	distinct(r, "proxy.listen", p.Listen, anyPort)
	distinct(r, "proxy.passthrough", p.Passthrough, nil)
	distinct(r, "proxy.unmatched.expected", p.Expected, nil)
	distinct(r, "proxy.observe.bodies", p.ObserveBodies, nil)
	distinct(r, "proxy.egress.allow", p.Egress.Allow, nil)
	distinct(r, "proxy.egress.deny", p.Egress.Deny, nil)
	together(r, "proxy.ca.cert_file", p.CA.CertFile, "proxy.ca.key_file", p.CA.KeyFile)
	if TrustStore(p.CA.BundleOut) == p.CA.BundleOut {
		r.rejected(&fault{"the trust store for Java gets this name", "give the file another extension, such as .pem"}, "proxy.ca.bundle_out")
	}
	checkReach(r, p)
	together(r, "proxy.unmanaged.workflow", p.Unmanaged.Workflow, "proxy.unmanaged.item", p.Unmanaged.Item)
	named(r, "proxy.unmanaged.workflow", p.Unmanaged.Workflow, names.Fault)
	named(r, "proxy.unmanaged.item", p.Unmanaged.Item, names.ItemFault)
	between(r, "proxy.hold", p.Hold, 0, time.Hour)
	between(r, "proxy.max_body", p.MaxBody, Byte, GiB)
	between(r, "proxy.max_head", p.MaxHead, KiB, MiB)
	between(r, "proxy.max_connections", p.MaxConnections, 1, 1_000_000)
}

func checkTimeouts(r *report, t *Timeouts) {
	between(r, "proxy.timeouts.request", t.Request, time.Millisecond, 24*time.Hour)
	between(r, "proxy.timeouts.total", t.Total, time.Millisecond, 24*time.Hour)
	atLeast(r, "proxy.timeouts.dial", t.Dial, time.Millisecond)
	atLeast(r, "proxy.timeouts.response", t.Response, time.Millisecond)
	atLeast(r, "proxy.timeouts.idle", t.Idle, time.Millisecond)
	notMore(r, "proxy.timeouts.dial", t.Dial, "proxy.timeouts.total", t.Total)
	notMore(r, "proxy.timeouts.response", t.Response, "proxy.timeouts.total", t.Total)
}

func checkLedger(r *report, l *Ledger) {
	if l.ID != "" && (len(l.ID) > 128 || strings.Trim(l.ID, ledgerIDAlphabet) != "") {
		r.rejected(&fault{"not a ledger's id", "copy it from what serve prints, or from keep-proxy status"}, "ledger.id")
	}
	if l.HighWaterFile != "" && inside(l.HighWaterFile, l.Dir) {
		r.rejected(&fault{
			"the file is inside the ledger's folder " + l.Dir + ", so that a restored copy would bring it along",
			"keep it on another disk or at least in another folder",
		}, "ledger.high_water_file", "ledger.dir")
	}
	atLeast(r, "ledger.min_free", l.MinFree, MiB)
	if l.Retention.Keep != 0 {
		between(r, "ledger.retention.keep", l.Retention.Keep, 24*time.Hour, 100*year)
	}
}

const ledgerIDAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:"

func checkReconcile(r *report, c *Reconcile) {
	between(r, "reconcile.inline", c.Inline, 0, 10*time.Minute)
	atLeast(r, "reconcile.base", c.Base, time.Millisecond)
	between(r, "reconcile.factor", c.Factor, 1, 10)
	between(r, "reconcile.jitter", c.Jitter, 0, 1)
	between(r, "reconcile.max_attempts", c.MaxAttempts, 1, 1000)
	between(r, "reconcile.settle", c.Settle, time.Millisecond, year)
	between(r, "reconcile.absent_confirmations", c.AbsentConfirmations, 1, 100)
	between(r, "reconcile.absent_spacing", c.AbsentSpacing, time.Millisecond, year)
	notMore(r, "reconcile.base", c.Base, "reconcile.cap", c.Cap)
	// When an absence can be believed depends on each rule. Ending earlier is safe: a person is asked.
	atLeast(r, "reconcile.max_age", c.MaxAge, time.Millisecond)
}

func checkRuns(r *report, c *Runs) {
	between(r, "runs.ttl", c.TTL, time.Second, year)
	between(r, "runs.retry_grace", c.RetryGrace, 0, time.Hour)
	between(r, "runs.retry_grace_max", c.RetryGraceMax, time.Second, 24*time.Hour)
	between(r, "runs.retry_grace_tries", c.RetryGraceTries, 0, 1000)
}

// between requires lo ≤ v ≤ hi.
func between[T cmp.Ordered](r *report, key string, v, lo, hi T) {
	if v >= lo && v <= hi {
		return
	}
	r.rejected(&fault{"out of bounds", fmt.Sprintf("write a value from %s to %s", short(lo), short(hi))}, key)
}

func atLeast[T cmp.Ordered](r *report, key string, v, lo T) {
	if v < lo {
		r.rejected(&fault{"too small", "write at least " + short(lo)}, key)
	}
}

func notMore(r *report, key string, v time.Duration, boundKey string, bound time.Duration) {
	if v > bound {
		r.rejected(&fault{
			fmt.Sprintf("%s (%s) is more than %s (%s)", key, short(v), boundKey, short(bound)),
			"lower the one or raise the other",
		}, key, boundKey)
	}
}

// together requires both values or neither.
func together(r *report, keyA, a, keyB, b string) {
	missing, given := keyA, keyB
	if a != "" {
		missing, given = keyB, keyA
	}
	if (a == "") != (b == "") {
		r.rejected(&fault{missing + " is missing", "set both " + keyA + " and " + keyB + ", or neither"}, given, missing)
	}
}

// named holds a name against what may be one.
func named(r *report, key, v string, faultOf func(string) (what, how string)) {
	if what, how := faultOf(v); v != "" && what != "" {
		r.rejected(&fault{what, how}, key)
	}
}

// distinct reports every element that stands in the list before, but for those
// that may repeat.
func distinct(r *report, key string, list []string, mayRepeat func(string) bool) {
	for i, v := range list {
		if mayRepeat != nil && mayRepeat(v) {
			continue
		}
		if first := slices.Index(list, v); first < i {
			r.rejected(&fault{"given twice, first as " + strictyaml.Index(key, first), "remove one of them"}, strictyaml.Index(key, i))
		}
	}
}

// anyPort reports whether a listener takes a free port, so that two of them are
// two listeners.
func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}

func isLoopback(address string) bool {
	if strings.HasPrefix(address, unixPrefix) {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// inside reports whether path is dir or below it.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// short writes a bound as people do: 10m, not 10m0s.
func short(v any) string {
	s := fmt.Sprint(v)
	if _, ok := v.(time.Duration); !ok {
		return s
	}
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func checkAdmin(r *report, c *Config) {
	a := &c.Admin
	together(r, "admin.tls.cert_file", a.TLS.CertFile, "admin.tls.key_file", a.TLS.KeyFile)
	if strings.HasPrefix(a.Listen, unixPrefix) && a.TLS.Enabled() {
		r.rejected(&fault{
			"a unix socket is served in clear: its owner alone connects to it", "remove admin.tls, or listen on host:port",
		}, "admin.tls.cert_file", "admin.listen")
	}
	if !isLoopback(a.Listen) && !a.TLS.Enabled() {
		r.rejected(&fault{
			"without TLS the admin API answers on loopback alone",
			"use 127.0.0.1:PORT, [::1]:PORT or unix:/path, or set admin.tls",
		}, "admin.listen", "admin.tls.cert_file")
	}
	for _, other := range []struct {
		key, address string
		taken        []string
		by           string
	}{
		{"admin.listen", a.Listen, c.Proxy.Listen, "proxy.listen"},
		{"admin.health_listen", a.HealthListen, c.Proxy.Listen, "proxy.listen"},
		{"admin.health_listen", a.HealthListen, []string{a.Listen}, "admin.listen"},
	} {
		if other.address != "" && slices.Contains(other.taken, other.address) && !anyPort(other.address) {
			r.rejected(&fault{other.key + " and " + other.by + " can't listen on one address", "give each its own"}, other.key, other.by)
		}
	}
	checkTokens(r, a.Tokens)
}

// checkTokens wants each token whole, and name and digest its own. Otherwise nobody could tell what was decided by
// whom.
func checkTokens(r *report, tokens []AdminToken) {
	taken, digests := map[string]string{}, map[string]string{}
	for i, t := range tokens {
		key := strictyaml.Index("admin.tokens", i)
		switch {
		case t.Name == "":
			r.rejected(&fault{"the holder's name is missing", "add name: NAME, which is recorded with what its holder decides"}, key+".name")
		case t.Name == "operator":
			r.rejected(&fault{"this name is the holder's of admin.token_file", "use another"}, key+".name")
		case taken[t.Name] != "":
			r.rejected(&fault{"this name is taken by " + taken[t.Name], "give each token a name of its own"}, key+".name")
		default:
			taken[t.Name] = key
			named(r, key+".name", t.Name, names.Fault)
		}
		if t.Role == "" {
			r.rejected(&fault{"the role is missing", "add role: viewer, operator or host"}, key+".role")
		}
		switch {
		case t.SHA256 == "":
			r.rejected(&fault{"the token's digest is missing", "add sha256, made by: printf %s \"$TOKEN\" | sha256sum"}, key+".sha256")
		case digests[t.SHA256] != "":
			r.rejected(&fault{"this is the token of " + digests[t.SHA256], "make one for each"}, key+".sha256")
		default:
			digests[t.SHA256] = key
		}
	}
}

// checkReach checks what leads to upstreams.
func checkReach(r *report, p *Proxy) {
	const base = "proxy.upstream_proxy"
	if u := p.UpstreamProxy; u.URL == "" && (u.User != "" || !u.Password.IsZero() || len(u.NoProxy) > 0) {
		r.rejected(&fault{"the proxy's address is missing", "add url: http://host:port"}, base+".url", base+".user", base+".no_proxy")
	} else if (u.User == "") != u.Password.IsZero() {
		r.rejected(&fault{"a user and a password belong together", "set both, or neither"}, base+".user", base+".password")
	}
	for i, c := range p.ClientCerts {
		key := strictyaml.Index("proxy.client_certs", i)
		for name, value := range map[string]string{"host": c.Host, "cert_file": c.CertFile, "key_file": c.KeyFile} {
			if value == "" {
				r.rejected(&fault{name + " is missing", "give host, cert_file and key_file"}, key+"."+name)
			}
		}
	}
}

// checkNotify wants each destination whole, and its name its own.
func checkNotify(r *report, c *Config) {
	between(r, "notify.standing_after", c.Notify.StandingAfter, 0, year)
	first := map[string]string{}
	name := func(key, text string) {
		switch place := first[text]; {
		case text == "":
			r.rejected(&fault{"the destination's name is missing", "add name: NAME, by which status and the log tell it"}, key)
		case place != "":
			r.rejected(&fault{"this name is taken by " + place, "give each destination a name of its own"}, key+".name")
		default:
			first[text] = key
			named(r, key+".name", text, names.Fault)
		}
	}
	for i, e := range c.Notify.Exec {
		key := strictyaml.Index("notify.exec", i)
		name(key, e.Name)
		if len(e.Command) == 0 || e.Command[0] == "" {
			r.rejected(&fault{"the command is missing", "add command: [/path/to/program, its, arguments]"}, key)
		}
	}
	for i, w := range c.Notify.Webhooks {
		key := strictyaml.Index("notify.webhooks", i)
		name(key, w.Name)
		if w.URL.IsZero() {
			r.rejected(&fault{"the url is missing", "add url: https://HOST/PATH, or ${env:NAME} for it"}, key)
		}
	}
}

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
	for _, name := range slices.Sorted(maps.Keys(c.Secrets())) {
		s := c.Secrets()[name]
		if c.SigV4 != nil && s.IsZero() {
			r.rejected(&fault{"is missing", `write "${file:/absolute/path}" or "${env:NAME}"`}, key+"."+name)
		}
		for _, path := range s.files() {
			if !filepath.IsAbs(path) {
				r.rejected(&fault{"${file:} takes an absolute path, not " + path, "write the path from / on"}, key+"."+name)
			}
		}
	}
	if c.SigV4 != nil {
		if !c.Value.IsZero() || len(c.Exec) > 0 || c.Scheme != nil || c.Header != "Authorization" {
			r.rejected(&fault{"a key signs requests, and is no header field", "keep sigv4 alone, with use"}, key+".sigv4")
		}
		return
	}
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

// optional is between for a key that may be left out. One that is set to zero is out of bounds.
func optional[T time.Duration | Size | int](r *report, key string, v, lo, hi T) {
	if _, given := r.origins[key]; given {
		between(r, key, v, lo, hi)
	}
}

// defaultCredentialCache is shorter than tokens usually live.
const defaultCredentialCache = 5 * time.Minute

// fill sets what a program's credential has by default. With cached, cache was set, perhaps to zero, which is no
// default.
func (c *Credentials) fill(cached bool) {
	if c.Header == "" && (len(c.Exec) > 0 || c.SigV4 != nil) {
		c.Header = "Authorization"
	}
	if len(c.Exec) == 0 {
		return
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
