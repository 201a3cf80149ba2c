package rules

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// replaced looks at what the script writes where we write. A marker that goes where
// identity is read takes away from the API what says which mutation it is, so that the
// script's own value is nowhere; a native key is made for the place that it goes to, and
// may well replace what tells the script's mutations apart.
func (d *decoder) replaced(m map[string]*yaml.Node, key string, op *Operation) {
	if op.marker != nil && !op.marker.append {
		if reader := op.identityReads(op.marker.at); reader != "" {
			d.mistaken("replaced", join(key, "marker"), m["marker"],
				"the marker goes to "+op.marker.at.where()+", which "+reader+" reads: the API would get it in place of what the script writes there",
				"write the marker where the script writes nothing, such as metadata.keep_id")
		}
	}
	if k := op.NativeKey; k != nil && k.WhenPresent == PresentReplace {
		if reader := op.identityReads(k.at); reader != "" {
			d.warn("replaced", join(key, "native_key"), m["native_key"],
				"the key goes to "+k.at.where()+", which "+reader+" reads: the API gets it in place of what the script writes there",
				"if the API needs the script's own value, name the place that it documents for idempotency keys; else this is sound")
		}
	}
}

// where names the place as an expression does.
func (p place) where() string {
	if p.root == "json" {
		return p.source
	}
	return p.root + "['" + p.steps[0].name + "']"
}

// identityReads is the key of what says which mutation it is and reads a value that is
// at a place or below it; "" for none.
func (op *Operation) identityReads(at place) string {
	for _, e := range op.identity {
		if e.readsAt(at) {
			return "identity." + e.name
		}
	}
	switch {
	case op.subkey.readsAt(at):
		return "subkey"
	case op.Connector.account.readsAt(at):
		return "account"
	}
	return ""
}

// readsAt reports whether an expression reads a value that is at a place or below it.
func (e *expr) readsAt(at place) bool {
	return e != nil && slices.ContainsFunc(e.refs, func(r place) bool {
		root := r.root
		if root == at.root+"_all" {
			root = at.root
		}
		return len(r.steps) >= len(at.steps) && at.covers(root, r.steps)
	})
}
