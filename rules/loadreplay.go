package rules

import (
	"net/http"
	"slices"

	"go.yaml.in/yaml/v4"
)

// replaying reads what a request that comes again meets.
func (d *decoder) replaying(m map[string]*yaml.Node, key string, op *Operation) {
	if m["repeat"] != nil {
		op.Repeat = Repeat(d.word(m["repeat"], join(key, "repeat"), string(RepeatRefuse), string(RepeatReplay)))
	}
	if m["drift"] != nil {
		op.Drift = Drift(d.word(m["drift"], join(key, "drift"), string(DriftWarn), string(DriftRefuse), string(DriftAllow)))
	}
	if n := m["subkey_header"]; n != nil {
		op.SubkeyHeader = SubkeyHeader(d.word(n, join(key, "subkey_header"),
			string(SubkeyForbidden), string(SubkeyOptional), string(SubkeyRequired)))
		if m["subkey"] != nil && op.SubkeyHeader != SubkeyForbidden {
			d.fail("value", join(key, "subkey_header"), n, "the rule has a subkey of its own", "keep one of subkey and subkey_header")
		}
	}
	for i, item := range d.optional(m["was"], join(key, "was")) {
		if name := d.name(item, item, index(join(key, "was"), i), operationName); name != "" {
			op.Was = append(op.Was, name)
		}
	}
	op.onSkip = d.standIn(m["on_skip"], join(key, "on_skip"))
	op.onNoResult = d.standIn(m["on_no_result"], join(key, "on_no_result"))
}

// standIn reads an answer that a rule gives in the place of a result; nil for none.
func (d *decoder) standIn(n *yaml.Node, key string) *resultTemplate {
	if n == nil {
		return nil
	}
	m := d.object(n, key, levelResult)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	r := &resultTemplate{status: http.StatusOK}
	if m["status"] != nil {
		r.status = d.number(m["status"], join(key, "status"), 200, 599)
	}
	if m["header"] != nil {
		r.header = d.headerMap(m["header"], join(key, "header"), inRecord)
	}
	if m["json"] != nil {
		r.json = d.template(m["json"], join(key, "json"), inRecord)
	}
	return r
}

// earlierNames checks that no operation took its earlier name from another one.
func (d *decoder) earlierNames(c *Connector, at map[*Operation]*yaml.Node) {
	taken := map[string]string{}
	for _, op := range c.Operations {
		for _, name := range op.Was {
			switch other := taken[name]; {
			case c.Operation(name) != nil:
				d.fail("was", "operations", at[op], op.Name+" says that it was "+name+", which is an operation of this file",
					"a name belongs to one operation: rename the other one, or leave was out")
			case other != "":
				d.fail("was", "operations", at[op], op.Name+" and "+other+" both say that they were "+name, "keep was in one of them")
			}
			taken[name] = op.Name
		}
	}
}

// exprs are the expressions of the template.
func (r *resultTemplate) exprs() []*expr {
	if r == nil {
		return nil
	}
	return slices.Concat(r.header.exprs(), r.json.exprs())
}
