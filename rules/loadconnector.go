package rules

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"keep-proxy/internal/strictyaml"
)

// connectorName is what a connector may be called: it is part of every key.
var connectorName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// operationName is what an operation may be called.
var operationName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// connector reads the top level of a file.
func (d *decoder) connector(v value, l *loading) *Connector {
	m, ok := d.Map(v, levelConnector)
	if !ok {
		return nil
	}
	d.version(m)
	c := &Connector{Head: d.head(m, l), Rate: d.rate(m.At("rate")), TrustRefused: !m.Has("trust_refused") || d.boolean(m.At("trust_refused"))}
	c.Title, c.HostGroup = c.Name, c.Name
	c.Accept = d.accepted(m.At("accept"))
	c.Evidence = d.evidence(m.At("evidence"))
	if title, ok := d.text(m.At("title")); ok {
		c.Title = title
	}
	if m.Has("host_group") {
		c.HostGroup = d.name(m, "host_group", connectorName)
	}
	if s := l.settingsFor(c.Name); s != nil {
		c.credentialField, c.signs = s.CredentialHeader, s.Signs
	}
	d.parameters(m.At("parameters"), c, l)
	d.reads(m.At("reads"), c)
	d.accountOf(m.At("account"), c)
	d.sharedOutcomes(m.At("outcome"), c)
	d.operations(m.At("operations"), c, l, d.blockScope(m.At("block_scope"), l.defaults.BlockScope))
	d.unusedOverrides(c, l)
	c.cases = d.cases(m.At("cases"))
	return c
}

// head reads what a set knows before a connector is compiled.
func (d *decoder) head(m fields, l *loading) (h Head) {
	h.Name, h.at = d.name(m, "connector", connectorName), m.At("connector").Place()
	for _, item := range d.OneOrMore(m.At("was")) {
		if name := d.shaped(item, connectorName); name == h.Name {
			d.Fail("was", item, "this is its name now", "write the names that it had before, or leave was out")
		} else if name != "" {
			h.Was = append(h.Was, name)
		}
	}
	h.Version = d.number(d.need(m, "version"), 1, 1<<30)
	if m, ok := d.Map(m.At("aws"), levelAWS); ok {
		h.service, _ = d.text(d.need(m, "service"))
	}
	d.hosts(m, &h, l)
	d.paths(m.At("paths"), &h)
	return h
}

// version checks the format's own version first, so that a file of a later format
// says so.
func (d *decoder) version(m fields) {
	v := m.At("apiVersion")
	if !v.Given() {
		d.Fail("missing", v, "apiVersion is missing", "begin the file with apiVersion: "+APIVersion)
	} else if s, ok := d.text(v); ok && s != APIVersion {
		d.Fail("value", v, quoted(s)+" is no format that this version reads", "write "+APIVersion)
	}
}

// name reads a required name that becomes part of keys.
func (d *decoder) name(m fields, name string, shape *regexp.Regexp) string {
	v := m.At(name)
	if !v.Given() {
		d.Fail("missing", v, v.Key+" is missing", "add "+name+":")
		return ""
	}
	return d.shaped(v, shape)
}

// shaped reads a name.
func (d *decoder) shaped(v value, shape *regexp.Regexp) string {
	s, ok := d.text(v)
	if ok && !shape.MatchString(s) {
		fix := "use lower-case letters, digits and -, at most 64, beginning with a letter or digit"
		if shape == operationName {
			fix = "use letters, digits, ., _ and -, at most 100, beginning with a letter or digit"
		}
		d.Fail("value", v, quoted(s)+" is no name", fix)
		return ""
	}
	return s
}

// hosts reads the file's hosts and puts the user's in their place.
func (d *decoder) hosts(m fields, h *Head, l *loading) {
	v := d.need(m, "hosts")
	if !v.Given() {
		return
	}
	h.hostsAt = v.Place()
	for _, item := range d.OneOrMore(v) {
		if s, ok := d.text(item); ok {
			p, err := parseHostPattern(s)
			if err != nil {
				d.Fail("host", item, quoted(s)+" is no host: "+err.Error(), "write a name, or name:port")
				continue
			}
			for i := range p.labels { // AWS's regions have a hyphen. So sts.{region} and {bucket}.s3 are different hosts.
				p.labels[i].hyphen = h.service != "" && p.labels[i].name == "region"
			}
			h.fileHosts = append(h.fileHosts, p)
		}
	}
	h.hosts, h.HostsInForce = h.fileHosts, OwnHosts
	if s := l.settingsFor(h.Name); s != nil && len(s.Hosts) > 0 {
		h.hosts = l.userHosts(s)
		h.HostsInForce = strings.Join(sources(h.hosts), " ")
	}
	h.Hosts = sources(h.hosts)
}

// sources are patterns as they are written.
func sources(patterns []*hostPattern) (out []string) {
	for _, p := range patterns {
		out = append(out, p.source)
	}
	return out
}

// userHosts reads settings.hosts.
func (l *loading) userHosts(s *Settings) (out []*hostPattern) {
	for i, h := range s.Hosts {
		p, err := parseHostPattern(h)
		if err != nil {
			l.setting(s.Connector+"."+strictyaml.Index("hosts", i), quoted(h)+" is no host: "+err.Error(), "write a name, or name:port")
			continue
		}
		out = append(out, p)
	}
	return out
}

// accepted reads the codes of warnings that a person answered, each with why.
func (d *decoder) accepted(v value) map[string]string {
	out := map[string]string{}
	for _, item := range d.OneOrMore(v) {
		d.Members(item, func(code string, _, why value) {
			if text, ok := d.text(why); ok {
				out[code] = text
			}
		})
	}
	return out
}

// reads reads which unmatched requests pass.
func (d *decoder) reads(v value, c *Connector) {
	if !v.Given() {
		d.Fail("missing", v, "reads is missing: nothing says which other requests may pass",
			"add reads: safe-methods (GET, HEAD and OPTIONS pass), or a list of path patterns")
		return
	}
	if v.Is(yaml.ScalarNode) {
		c.ReadsSafe = word(d, v, "", "safe-methods") != ""
		return
	}
	for _, item := range d.list(v) {
		if p := d.pathPattern(item); p != nil {
			c.readPaths = append(c.readPaths, p)
			c.ReadPaths = append(c.ReadPaths, p.source)
		}
	}
}

// pathPattern reads a path pattern.
func (d *decoder) pathPattern(v value) *pathPattern {
	s, ok := d.text(v)
	if !ok {
		return nil
	}
	s, empty := d.inserted(v, s)
	if empty {
		d.Fail("parameter", v, "a parameter in the path is empty", "set it, or give it a default")
		return nil
	}
	p, err := parsePathPattern(s)
	if err != nil {
		d.Fail("path", v, quoted(s)+" is no path pattern: "+err.Error(), "write it like /repos/{owner}/{repo}/contents/{file...}")
		return nil
	}
	return p
}

// accountOf reads whose data the API changes.
func (d *decoder) accountOf(v value, c *Connector) {
	if v.Is(yaml.MappingNode) {
		d.accountRead(v, c)
		return
	}
	c.account = d.expr(v, inRequest)
	c.HasAccount = c.account != nil
}

// blockScope reads what an unknown stops.
func (d *decoder) blockScope(v value, fallback string) string {
	return word(d, v, fallback, "workflow", "item", "mutation")
}

// rate reads how often the API may be asked.
func (d *decoder) rate(v value) Rate {
	m, ok := d.Map(v, levelRate)
	if !ok {
		return Rate{}
	}
	return Rate{Requests: d.number(d.need(m, "requests"), 1, 1_000_000), Per: d.duration(d.need(m, "per"))}
}

// unusedOverrides reports overrides of operations that there are not.
func (d *decoder) unusedOverrides(c *Connector, l *loading) {
	s := l.settingsFor(c.Name)
	if s == nil || l.pinned {
		return
	}
	var names []string
	for _, op := range c.Operations {
		names = append(names, op.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Overrides)) {
		if !slices.Contains(names, name) {
			l.setting(c.Name+".overrides."+name, "no operation has this name", meant(name, "operations", names))
		}
	}
}

// Bounds of a read of the account.
const (
	defaultAccountCache = time.Hour
	maxAccountCache     = 24 * time.Hour
)

// accountRead reads a map below account.
func (d *decoder) accountRead(v value, c *Connector) {
	m, _ := d.Map(v, levelAccount)
	a := &AccountRead{Cache: defaultAccountCache, step: &sendStep{ask: &Probe{op: &Operation{Connector: c}}}}
	from := d.need(m, "value")
	d.asks(m, a.step.ask, "read", inRequest, "get", "post")
	a.step.form = d.mapOf(m.At("form"), inRequest)
	if slices.ContainsFunc(a.step.exprs(), func(e *expr) bool { return len(e.refs) > 0 }) {
		d.Fail("value", v, "an account doesn't depend on the request that it is asked for", "write a path such as /v1/me, and values without expressions")
	}
	d.accountToken(m, a)
	if given := d.expr(m.At("given"), inRequest); given != nil && (given.chain == nil || given.chain.constant == nil) {
		d.Fail("value", m.At("given"), "is no text that a parameter gives", "write given: param.NAME")
	} else if given != nil && *given.chain.constant != "" {
		c.account, c.HasAccount = given, true
		return
	}
	if a.value = d.expr(from, inAnswer); a.value != nil {
		if !a.value.readsAny("response") {
			d.Fail("value", from, "doesn't read the answer", "take it from there, such as response.json.email")
		}
		if slices.ContainsFunc(a.value.refs, func(r place) bool { return r.root != "response" && slices.Contains(variables, r.root) }) {
			d.Fail("value", from, "reads the request, but an account doesn't depend on the request that it is asked for", "read response alone")
		}
	}
	if at := m.At("cache"); at.Given() {
		a.Cache = d.atMost(at, maxAccountCache, "is longer than a day", "write at most 24h")
	}
	if a.step.ask.path != nil && a.value != nil {
		c.AccountRead, c.HasAccount = a, true
	}
}

// accountToken reads where the script's credential stands in a body. The read sends it in the same place.
func (d *decoder) accountToken(m fields, a *AccountRead) {
	at, ok := d.Map(m.At("token"), levelToken)
	for _, in := range levelToken.Known {
		if !at.Has(in) {
			continue
		}
		into := map[string]**template{"form": &a.step.form, "json": &a.step.ask.json}[in]
		if *into == nil {
			*into = &template{value: jsonValue{kind: jsonObject}}
		}
		p, single := d.writable(at.At(in), in)
		if !single || len(p.steps) != 1 || (*into).value.kind != jsonObject || a.token != nil || a.step.ask.method != http.MethodPost {
			d.Fail("value", at, "is no member of what is sent", "write post:, and form: or json: with one name")
			return
		}
		name := p.steps[0].name
		a.token = &p
		e, _ := compileExpr(in+"[?"+celText(name)+"]", inRequest) // Whatever the name, it compiles.
		(*into).names, (*into).items = append((*into).names, name), append((*into).items, &template{expr: e})
	}
	if ok && a.token == nil {
		d.Fail("missing", at, "token names no place", "write form: or json: with one name")
	}
}
