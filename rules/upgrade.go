package rules

import (
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"
)

// Upgrade is what a request asks to change its connection to, in its own order (RFC 9110
// §7.8); none for a request that asks for no change. What a change can't be asked for
// with is refused, whatever the rules say: another method than GET, content, an Upgrade
// field that Connection doesn't name, and one that is no list of protocols.
func (r Raw) Upgrade() (asked []string, refusal *Refusal) {
	lines := r.Header["Upgrade"]
	if len(lines) == 0 {
		return nil, nil
	}
	const only = "protocol upgrades are refused but for a GET request without content whose rule names the protocol: "
	switch {
	case r.Method != http.MethodGet:
		return nil, refuse(ProblemDenied, only+"this one is "+r.Method)
	case r.HasBody || len(r.Body) > 0:
		return nil, refuse(ProblemDenied, only+"this one has content")
	case !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade"):
		return nil, refuse(ProblemDenied, only+"this one has the field Upgrade, and no \"Connection: Upgrade\" (RFC 9110 §7.8)")
	}
	asked, sound := Protocols(lines)
	if !sound || len(asked) == 0 {
		return nil, refuse(ProblemDenied, only+"the field Upgrade of this one is no list of protocols")
	}
	return asked, nil
}

// Protocols parts the lines of an Upgrade field (RFC 9110 §7.8). It is not sound if an
// element is no protocol.
func Protocols(lines []string) (protocols []string, sound bool) {
	for _, line := range lines {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.Trim(one, " \t"); one == "" {
				continue // RFC 9110 §5.6.1.2
			}
			if !isProtocol(one) {
				return nil, false
			}
			protocols = append(protocols, one)
		}
	}
	return protocols, true
}

// isProtocol knows a protocol's name, with or without a version.
func isProtocol(s string) bool {
	name, version, versioned := strings.Cut(s, "/")
	return httpguts.ValidHeaderFieldName(name) && (!versioned || httpguts.ValidHeaderFieldName(version))
}

// Upgrade decides what a request that asks to change protocols may ask the upstream for:
// those of asked that its rule names. No rule, or a rule that names none of them, is a
// refusal.
func (m *Match) Upgrade(asked []string) (allowed []string, refusal *Refusal) {
	op := m.Operation
	if op == nil || len(op.Upgrade) == 0 || op.Effect != EffectRead && op.Effect != EffectIgnore {
		return nil, refuse(ProblemDenied, "protocol upgrades are refused where no rule names the protocol (upgrade)")
	}
	if m.Refusal != nil {
		return nil, m.Refusal
	}
	if allowed = op.Upgrades(asked); len(allowed) == 0 {
		return nil, refuse(ProblemDenied, "protocol upgrades are refused where the rule doesn't name the protocol: "+op.Name+" of "+
			op.Connector.Name+" names "+strings.Join(op.Upgrade, ", "))
	}
	return allowed, nil
}

// Upgrades are those of some protocols that the rule names, as they are spelt there.
func (op *Operation) Upgrades(protocols []string) []string {
	var out []string
	for _, one := range protocols {
		if slices.ContainsFunc(op.Upgrade, func(named string) bool { return strings.EqualFold(named, one) }) {
			out = append(out, one)
		}
	}
	return out
}

// upgrade reads the protocols to which an operation lets connections change.
func (d *decoder) upgrade(n *yaml.Node, key string, op *Operation, known bool) {
	if known && op.Effect != EffectRead && op.Effect != EffectIgnore {
		d.fail("no-effect", key, n, "what is said after a change of protocols is neither judged nor recorded, so that only what is passed on can have one",
			"leave it out; or, where nothing that is said there changes anything that matters, make it an operation of its own with effect: read or ignore")
		return
	}
	if slices.ContainsFunc(op.matches, func(m *matcher) bool { return !slices.Equal(m.methods, []string{http.MethodGet}) }) {
		d.fail("value", key, n, "a change of protocols is asked for with GET alone, and a match of this operation takes something else",
			"write method: GET into each match, or give the others an operation of their own")
	}
	items := d.oneOrMore(n, key)
	if n.Kind == yaml.SequenceNode && len(items) == 0 {
		d.fail("empty", key, n, "names no protocol", "name one, such as websocket, or leave the key out")
	}
	for i, item := range items {
		k := key
		if n.Kind == yaml.SequenceNode {
			k = index(key, i)
		}
		name, ok := d.text(item, k)
		if !ok {
			continue
		}
		if problem, fix := badProtocol(item, name); problem != "" {
			d.fail("value", k, item, problem, fix)
			continue
		}
		if len(op.Upgrades([]string{name})) > 0 {
			d.fail("value", k, item, printable(name)+" is there twice; letters of either case are the same", "keep one of them")
			continue
		}
		op.Upgrade = append(op.Upgrade, name)
	}
}

// badProtocol says what is wrong with a protocol that a rule names; "" for nothing.
func badProtocol(n *yaml.Node, name string) (problem, fix string) {
	word, _, _ := strings.Cut(strings.ToLower(name), "/")
	switch {
	case n.Tag != "!!str" || !isProtocol(name):
		return printable(name) + " is no protocol", "write a name as in the field Upgrade (RFC 9110 §7.8), such as websocket, or name/version"
	case strings.Contains(name, "*"):
		return printable(name) + " would be every protocol", "name each one, such as websocket"
	case slices.Contains([]string{"http", "https", "h2c", "h2", "h3", "tls"}, word):
		return "after a change to " + printable(name) + " requests would pass unseen, mutations among them",
			"leave it out: clients get HTTP/2 and TLS by CONNECT"
	}
	return "", ""
}
