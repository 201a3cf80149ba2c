package rules

import "sync"

// view is a body in a form that has a variable of its own, such as multipart. The tree is what expressions read. The
// pairs are what counts when two bodies are compared. Both are nil for a body that isn't in that form.
type view struct {
	tree  *jsonValue
	pairs *pairs
	// graphQL is what tree shows of a request of GraphQL.
	graphQL *graphQL
	// problem is set when the body claims the form, and can't be read in it without guessing.
	problem *Refusal
}

// view makes a view of the body once. It is made when a rule first reads it, and never for a body of which no rule does.
func (c *content) view(by any, read func() view) view {
	once, _ := c.views.LoadOrStore(by, sync.OnceValue(read))
	made, _ := once.(func() view)
	return made()
}

// view is the request's body as a variable shows it. A problem is noted in the scope.
func (s *scope) view(root string) view {
	var v view
	switch c := s.req.read(); root {
	case "multipart":
		v = c.view(root, c.parseMultipart)
	case "graphql":
		v = c.view(root, c.parseGraphQL)
	case "jsonrpc":
		_ = s.json() // Its problems are the call's.
		v = c.view(root, c.parseCall)
	case "aws":
		v, _ = s.awsAction()
	case "mail":
		if s.mail != nil {
			v = c.view(s.mail, func() view { return c.parseMail(s.mail) })
		}
	}
	if v.problem != nil {
		s.note(v.problem)
	}
	return v
}

// tree is a variable that shows the body as a tree; nil where the body isn't in that form.
func (s *scope) tree(root string) *jsonValue {
	if root == "json" {
		return s.json()
	}
	return s.view(root).tree
}

// viewed is the body as it is compared, where the rule reads it by a variable of its own; nil where it doesn't, or the
// body isn't in that form.
func (op *Operation) viewed(s *scope) *pairs {
	if op.view == "" {
		return nil
	}
	return s.view(op.view).pairs
}

// viewPlaces are the members of such variables that are places, by variable; true for those that have names of their
// own below them.
var viewPlaces = map[string]map[string]bool{
	"multipart": {"fields": true, "files": true},
	"mail": {
		"subject": false, "from": false, "to": false, "cc": false, "bcc": false, "reply_to": false, "in_reply_to": false,
		"text": false, "html": false, "attachments": false, "headers": true,
	},
}

// viewName is the name of a place below such a variable: fields.x for multipart.fields.x.
func (p place) viewName() (string, bool) {
	named, known := viewPlaces[p.root][p.steps[0].name]
	switch {
	case !known || p.steps[0].kind != stepName || named != (len(p.steps) == 2):
		return "", false
	case !named:
		return p.steps[0].name, len(p.steps) == 1
	}
	return p.steps[0].name + "." + p.steps[1].name, p.steps[1].kind == stepName
}
