package rules

import (
	"slices"
	"strconv"
	"strings"
)

// Bounds of a body of AWS's query protocol.
const (
	maxAWSFields = 1000
	maxAWSDepth  = 20
)

// awsAction is the variable aws: which action of AWS is asked for, with its parameters. The root is where they stand.
func (s *scope) awsAction() (v view, root string) {
	c, targets, url := s.req.read(), s.req.Header["X-Amz-Target"], s.queryPairs()
	by := "aws"
	root = "form"
	if len(targets) > 0 {
		by, root = "aws "+targets[0], "json"
	}
	switch {
	case len(targets) > 1:
		return view{problem: refuse(ProblemAmbiguous, "X-Amz-Target comes more than once")}, root
	case url.problem != nil || slices.ContainsFunc(url.list, func(p pair) bool { return strings.EqualFold(p.name, "action") }):
		return view{problem: refuse(ProblemAmbiguous, "the URL may hold an action of AWS; send it in the content")}, root
	}
	return c.view(by, func() view { return c.parseAWS(targets) }), root
}

// parseAWS reads a request of JSON 1.0 and 1.1, which has a target, or of the query protocol.
func (c *content) parseAWS(targets []string) view {
	tree, params := &jsonValue{kind: jsonObject}, &jsonValue{kind: jsonObject}
	var action string
	switch {
	case c.problem != nil:
		return view{problem: c.problem}
	case len(targets) > 0:
		_, action, _ = strings.Cut(targets[0], ".")
		switch {
		case c.jsonProblem != nil:
			return view{problem: c.jsonProblem}
		case c.form != nil, action == "", strings.Contains(action, "."), len(c.bytes) > 0 && (c.json == nil || c.json.kind != jsonObject):
			return view{problem: refuse(ProblemAmbiguous, "X-Amz-Target names an action of AWS, and the content is no JSON object for it")}
		case c.json != nil:
			params = c.json
		}
	case c.form == nil:
		return view{}
	case c.form.problem != nil:
		return view{problem: c.form.problem}
	default:
		var why string
		if action, params, why = c.form.action(); why != "" {
			return view{problem: refuse(ProblemAmbiguous, "the form can't be read as an action of AWS: "+why)}
		}
		if action == "" {
			return view{}
		}
	}
	tree.names, tree.items = []string{"action", "params"}, []jsonValue{stringValue(action), *params}
	return view{tree: tree}
}

// action reads the query protocol. Its names spell members and lists, such as Entry.1.Id or ToAddresses.member.1.
func (p *pairs) action() (action string, params *jsonValue, why string) {
	params = &jsonValue{kind: jsonObject}
	switch {
	case p.variant("Action") || len(p.values("Action")) > 1:
		return "", nil, "Action comes again, perhaps in another case"
	case len(p.values("Action")) == 0:
		return "", params, ""
	case len(p.list) > maxAWSFields:
		return "", nil, "it has more than " + strconv.Itoa(maxAWSFields) + " fields"
	}
	for _, one := range p.list {
		steps := strings.Split(one.name, ".")
		switch {
		case len(steps) > maxAWSDepth:
			return "", nil, "a name is nested too deep"
		case one.name == "Action":
			action = one.value
		case one.name == "Version":
		case !params.spell(steps, one.value):
			return "", nil, "a name comes again, or has both a value and members"
		}
	}
	params.gather()
	return action, params, ""
}

// spell puts a text below names that lead to it; false if there is something already.
func (v *jsonValue) spell(steps []string, text string) bool {
	for i, name := range steps {
		next, known := v.member(name)
		last := i == len(steps)-1
		if known && (last || next.kind != jsonObject) || v.kind != jsonObject {
			return false
		}
		if !known {
			v.names, v.items = append(v.names, name), append(v.items, jsonValue{kind: jsonObject})
			next = &v.items[len(v.items)-1]
		}
		if last {
			*next = stringValue(text)
		}
		v = next
	}
	return true
}

// gather makes lists of objects whose names count from 1.
func (v *jsonValue) gather() {
	for i := range v.items {
		v.items[i].gather()
	}
	if v.kind != jsonObject {
		return
	}
	list := make([]jsonValue, len(v.items))
	for i, name := range v.names {
		n, err := strconv.Atoi(name)
		if err != nil || n < 1 || n > len(list) || strconv.Itoa(n) != name {
			list = nil
			break
		}
		list[n-1] = v.items[i]
	}
	switch {
	case len(list) > 0:
		*v = jsonValue{kind: jsonArray, items: list}
	case len(v.names) == 1 && (v.names[0] == "member" || v.names[0] == "entry") && v.items[0].kind == jsonArray:
		*v = v.items[0]
	}
}

// takesAction reports whether the request asks for one of the actions that the match names.
func (m *matcher) takesAction(req *Request) (bool, *Refusal) {
	v, _ := (&scope{req: req}).awsAction()
	if v.tree == nil {
		return false, v.problem
	}
	return slices.Contains(m.actions, v.tree.items[0].text), nil
}

// awsMatch reads which actions fit.
func (d *decoder) awsMatch(m fields, out *matcher) {
	v := m.At("aws")
	if !v.Given() {
		return
	}
	inner, _ := d.Map(v, levelAWSMatch)
	if out.actions = d.texts(inner.At("action")); len(out.actions) == 0 {
		d.Fail("missing", v, "names no action", "write aws: {action: SendMessage}, or a list of actions")
	}
}

// keyPlace is where the native key of this request stands.
func (op *Operation) keyPlace(req *Request) place {
	at := op.NativeKey.at
	if at.root != "aws" {
		return at
	}
	_, root := (&scope{req: req}).awsAction()
	return awsPlace(at, root)
}

// awsPlace is a parameter of an action where it stands.
func awsPlace(at place, root string) place {
	return place{source: root + "." + at.steps[1].name, root: root, steps: at.steps[1:]}
}

// sealed refuses what would break the signature of a request (SigV4) that isn't signed anew.
func (o *outgoing) sealed(changed bool) *Refusal {
	if !changed || o.op.Connector == nil || o.op.Connector.signs {
		return nil
	}
	by := strings.Join(o.req.Header["Authorization"], " ")
	if (!strings.HasPrefix(by, "AWS4-") || !strings.Contains(by, "Credential=")) && !strings.Contains(strings.ToLower(o.req.rawQuery), "x-amz-signature=") {
		return nil
	}
	return refuse(ProblemIdentity, "the request is signed (SigV4), and the rule "+o.op.Name+
		" writes into it, which breaks the signature; configure credentials.sigv4 of the connector with use: always")
}
