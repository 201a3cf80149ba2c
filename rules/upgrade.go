package rules

import (
	"net/http"
	"slices"
	"strings"

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
