package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// connectorName is what a connector may be called: it is part of every key.
var connectorName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// operationName is what an operation may be called.
var operationName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// connector reads the top level of a file.
func (d *decoder) connector(n *yaml.Node, l *loading) *Connector {
	m := d.object(n, "", levelConnector)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	d.version(n, m["apiVersion"])
	c := &Connector{Rate: d.rate(m["rate"]), TrustRefused: true}
	c.Name = d.name(n, m["connector"], "connector", connectorName)
	if v := m["connector"]; v != nil {
		c.nameLine, c.nameColumn = v.Line, v.Column
	}
	if v, ok := d.need(n, m, "", "version"); ok {
		c.Version = d.number(v, "version", 1, 1<<30)
	}
	c.Title = c.Name
	if m["title"] != nil {
		c.Title, _ = d.text(m["title"], "title")
	}
	c.HostGroup = c.Name
	if m["host_group"] != nil {
		c.HostGroup = d.name(n, m["host_group"], "host_group", connectorName)
	}
	if m["trust_refused"] != nil {
		c.TrustRefused = d.boolean(m["trust_refused"], "trust_refused")
	}
	if s := l.settingsFor(c.Name); s != nil {
		c.credentialField = s.CredentialHeader
	}
	d.hosts(n, m, c, l)
	d.reads(n, m, c)
	d.accountOf(m["account"], c)
	blockScope := d.blockScope(m["block_scope"], "block_scope", l.defaults.BlockScope)
	d.operations(n, m["operations"], c, l, blockScope)
	d.unusedOverrides(c, l)
	if m["cases"] != nil {
		c.cases = d.cases(m["cases"], "cases")
	}
	return c
}

// version checks the format's own version first, so that a file of a later format
// says so.
func (d *decoder) version(root, n *yaml.Node) {
	if n == nil {
		d.fail("missing", "apiVersion", root, "apiVersion is missing", "begin the file with apiVersion: "+APIVersion)
		return
	}
	if s, ok := d.text(n, "apiVersion"); ok && s != APIVersion {
		d.fail("value", "apiVersion", n, quoted(s)+" is no format that this version reads", "write "+APIVersion)
	}
}

// examples are values that make plain what required keys take.
var examples = map[string]string{
	"version": " 1", "hosts": " [api.example.com]", "tie": " marker, or vendor_key, unique or content",
	"ours": " found.metadata.keep_id == mutation.marker, or what else ties an object to the mutation",
	"per":  " 1m", "requests": " 100", "until": " response.json.status == 'done'", "max": " 1h",
}

// need finds a required key of the map at key.
func (d *decoder) need(at *yaml.Node, m map[string]*yaml.Node, key, name string) (*yaml.Node, bool) {
	n := m[name]
	if n == nil {
		d.fail("missing", join(key, name), at, name+" is missing", "add "+name+":"+examples[name])
	}
	return n, n != nil
}

// name reads a name that becomes part of keys.
func (d *decoder) name(at, n *yaml.Node, key string, shape *regexp.Regexp) string {
	if n == nil {
		d.fail("missing", key, at, key+" is missing", "add "+key+":")
		return ""
	}
	s, ok := d.text(n, key)
	if ok && !shape.MatchString(s) {
		fix := "use lower-case letters, digits and -, at most 64, beginning with a letter or digit"
		if shape == operationName {
			fix = "use letters, digits, ., _ and -, at most 100, beginning with a letter or digit"
		}
		d.fail("value", key, n, quoted(s)+" is no name", fix)
		return ""
	}
	return s
}

// hosts reads the file's hosts and puts the user's in their place.
func (d *decoder) hosts(root *yaml.Node, m map[string]*yaml.Node, c *Connector, l *loading) {
	n, ok := d.need(root, m, "", "hosts")
	if !ok {
		return
	}
	if l.at == nil {
		l.at = map[*Connector]*yaml.Node{}
	}
	l.at[c] = n
	for i, item := range d.oneOrMore(n, "hosts") {
		key := index("hosts", i)
		s, ok := d.text(item, key)
		if !ok {
			continue
		}
		p, err := parseHostPattern(s)
		if err != nil {
			d.fail("host", key, item, quoted(s)+" is no host: "+err.Error(), "write a name, or name:port")
			continue
		}
		c.fileHosts = append(c.fileHosts, p)
	}
	c.hosts, c.HostsInForce = c.fileHosts, OwnHosts
	if s := l.settingsFor(c.Name); s != nil && len(s.Hosts) > 0 {
		c.hosts = l.userHosts(s)
		c.HostsInForce = strings.Join(sources(c.hosts), " ")
	}
	c.Hosts = sources(c.hosts)
}

// sources are patterns as they are written.
func sources(patterns []*hostPattern) (out []string) {
	for _, p := range patterns {
		out = append(out, p.source)
	}
	return out
}

// userHosts reads settings.hosts.
func (l *loading) userHosts(s *Settings) []*hostPattern {
	var out []*hostPattern
	for i, h := range s.Hosts {
		p, err := parseHostPattern(h)
		if err != nil {
			l.setting(SeverityError, s.Connector+"."+index("hosts", i), quoted(h)+" is no host: "+err.Error(), "write a name, or name:port")
			continue
		}
		out = append(out, p)
	}
	return out
}

// reads reads which unmatched requests pass.
func (d *decoder) reads(root *yaml.Node, m map[string]*yaml.Node, c *Connector) {
	n := m["reads"]
	if n == nil {
		d.fail("missing", "reads", root, "reads is missing: nothing says which other requests may pass",
			"add reads: safe-methods (GET, HEAD and OPTIONS pass), or a list of path patterns")
		return
	}
	if n.Kind == yaml.ScalarNode {
		c.ReadsSafe = d.word(n, "reads", "safe-methods") != ""
		return
	}
	for i, item := range d.elements(n, "reads") {
		if p := d.pathPattern(item, index("reads", i)); p != nil {
			c.readPaths = append(c.readPaths, p)
			c.ReadPaths = append(c.ReadPaths, p.source)
		}
	}
}

// pathPattern reads a path pattern.
func (d *decoder) pathPattern(n *yaml.Node, key string) *pathPattern {
	s, ok := d.text(n, key)
	if !ok {
		return nil
	}
	p, err := parsePathPattern(s)
	if err != nil {
		d.fail("path", key, n, quoted(s)+" is no path pattern: "+err.Error(), "write it like /repos/{owner}/{repo}/contents/{file...}")
		return nil
	}
	return p
}

// accountOf reads whose data the API changes.
func (d *decoder) accountOf(n *yaml.Node, c *Connector) {
	if n == nil {
		return
	}
	if n.Kind == yaml.MappingNode {
		d.accountRead(n, c)
		return
	}
	c.account = d.expr(n, "account", inRequest)
	c.HasAccount = c.account != nil
}

// blockScope reads what an unknown stops.
func (d *decoder) blockScope(n *yaml.Node, key, fallback string) string {
	if n == nil {
		return fallback
	}
	if s := d.word(n, key, "workflow", "item", "mutation"); s != "" {
		return s
	}
	return fallback
}

// inlineTry is how long the try right after a lost answer may take, as reconcile.inline
// has it by default.
const inlineTry = 10 * time.Second

// rate reads how often the API may be asked.
func (d *decoder) rate(n *yaml.Node) Rate {
	if n == nil {
		return Rate{}
	}
	m := d.object(n, "rate", levelRate)
	if n.Kind != yaml.MappingNode {
		return Rate{}
	}
	var r Rate
	if v, ok := d.need(n, m, "rate", "requests"); ok {
		r.Requests = d.number(v, "rate.requests", 1, 1_000_000)
	}
	if v, ok := d.need(n, m, "rate", "per"); ok {
		r.Per = d.duration(v, "rate.per")
	}
	if each := r.each(); each > inlineTry {
		d.warn("rate", "rate", n,
			fmt.Sprintf("admits one request in %v, and dispatches use it up: what asks at once about a lost answer has %v, mostly too little", each, inlineTry),
			"allow more requests, if the API does; else such questions are asked later, and stop their scope for as long")
	}
	return r
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
	for name := range s.Overrides {
		if slices.Contains(names, name) {
			continue
		}
		fix := "the operations are " + listed(names)
		if near := nearest(name, names); near != "" {
			fix = "did you mean " + near + "?"
		}
		l.setting(SeverityError, c.Name+".overrides."+name, "no operation has this name", fix)
	}
}
