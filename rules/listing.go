package rules

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// object is one object of a listing that the rule calls ours.
type object struct {
	id      string
	created time.Time
	result  *Result
	// item is the object itself, in the answer page.
	item *jsonValue
	page *answer
}

// collect takes the objects of one page.
func (a *Asking) collect() error {
	list, err := required(a.probe.candidates, a.scope)
	if err != nil {
		return fmt.Errorf("candidates: %w", err)
	}
	if list.kind != jsonArray {
		return errors.New("candidates is no list")
	}
	for i := range list.items {
		a.scope.found = &list.items[i]
		err := a.consider()
		a.scope.found = nil
		if err != nil {
			return err
		}
	}
	return nil
}

// consider takes the object in found if it is ours. One that comes again on
// another page, as listings do when they shift, counts once.
func (a *Asking) consider() error {
	ours, err := a.probe.ours.test(a.scope)
	if err != nil {
		return fmt.Errorf("ours can't be evaluated: %w", err)
	}
	if !ours {
		return nil
	}
	o := object{item: a.scope.found, page: a.scope.resp}
	if o.id, err = objectID(a.probe.id, a.scope); err != nil {
		return err
	}
	if slices.ContainsFunc(a.found, func(other object) bool { return other.id == o.id }) {
		return nil
	}
	if a.probe.created != nil {
		if o.created, err = createdAt(a.probe.created, a.scope); err != nil {
			return err
		}
	}
	if o.result, err = a.probe.result.build(a.scope); err != nil {
		return err
	}
	a.found = append(a.found, o)
	return nil
}

// objectID is an object's own id; it can't be empty.
func objectID(e *expr, s *scope) (string, error) {
	v, err := required(e, s)
	if err != nil {
		return "", fmt.Errorf("id: %w", err)
	}
	if v.kind != jsonString && v.kind != jsonNumber || v.text == "" {
		return "", errors.New("id is neither text nor a number")
	}
	return scalarText(&v), nil
}

// createdAt is when an object was created: a timestamp, or its RFC 3339 text.
func createdAt(e *expr, s *scope) (time.Time, error) {
	v, err := required(e, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("created: %w", err)
	}
	t, err := time.Parse(time.RFC3339, v.text)
	if v.kind != jsonString || err != nil {
		return time.Time{}, errors.New("created is no timestamp")
	}
	return t, nil
}

// following is the request for the next page; nil after the last. A listing that
// would go on beyond max, or in a circle, was cut.
func (a *Asking) following(last *Ask) (*Ask, error) {
	p := a.probe.pages
	if p == nil {
		if _, cut, err := nextLink(a.scope.resp.Header); cut || err != nil {
			return nil, errors.New("the listing goes on, but the rule has no pages")
		}
		return nil, nil //nolint:nilnil // a listing of one page has no next one
	}
	var target string
	var err error
	if p.link {
		target, err = a.linked(last)
	} else {
		target, err = a.more(last)
	}
	if target == "" || err != nil {
		return nil, err
	}
	if a.read >= p.max {
		return nil, fmt.Errorf("the listing goes on after %s; absence and number can't be known", plural(p.max, "page", "pages"))
	}
	if a.sent[target] {
		return nil, errors.New("the listing points to a page that was read already")
	}
	next := *last
	next.Target, next.Shown = target, ""
	return &next, nil
}

// more is the target with the query changed as set says; "" after the last page.
func (a *Asking) more(last *Ask) (string, error) {
	goesOn, err := a.probe.pages.more.test(a.scope)
	if err != nil {
		return "", fmt.Errorf("more can't be evaluated: %w", err)
	}
	if !goesOn {
		return "", nil
	}
	set, err := a.probe.pages.set.namedValues(a.scope)
	if err != nil {
		return "", fmt.Errorf("set: %w", err)
	}
	query := slices.DeleteFunc(slices.Clone(a.query), func(one pair) bool {
		return slices.ContainsFunc(set, func(s pair) bool { return s.name == one.name })
	})
	a.query = slices.Concat(query, set)
	target, _, _ := strings.Cut(last.Target, "?")
	return withQuery(target, a.query), nil
}

// linked is the target of Link rel="next" (RFC 8288); "" without one. It must stay
// on the same origin, since credentials are sent along.
func (a *Asking) linked(last *Ask) (string, error) {
	reference, found, err := nextLink(a.scope.resp.Header)
	if !found || err != nil {
		return "", err
	}
	rest := reference
	if !strings.HasPrefix(reference, "/") || strings.HasPrefix(reference, "//") {
		scheme, after, ok := strings.Cut(reference, "://")
		if !ok {
			return "", errors.New("the link to the next page is no absolute URL")
		}
		i := strings.IndexAny(after, "/?")
		if i < 0 {
			return "", errors.New("the link to the next page has no path")
		}
		req, refusal := Normalise(Raw{Method: http.MethodGet, Scheme: strings.ToLower(scheme), Authority: after[:i], Target: "/"})
		if refusal != nil || req.Scheme != last.Scheme || req.Authority() != last.Authority {
			return "", errors.New("the link to the next page leads to another host")
		}
		rest = after[i:]
	}
	rest, _, _ = strings.Cut(rest, "#")
	req, refusal := Normalise(Raw{Method: last.Method, Scheme: last.Scheme, Authority: last.Authority, Target: rest})
	if refusal != nil || req.path.emptySegment {
		return "", errors.New("the link to the next page can't be read")
	}
	return req.Target(), nil
}

// MayBeOf reports whether the object, which this try found, may also be of the other mutation of the same operation.
// Only the rule's ours can say that it is not. Where ours can't be asked, the object may be of it. So it may where
// ours reads steps: they asked about this mutation. own is the other's operation in the version that it is pinned
// to. Where that is another one both must say so, and this one by what the other can't have written in its own way.
func (a *Asking) MayBeOf(own *Operation, other Env, objectID string) bool {
	i := slices.IndexFunc(a.found, func(o object) bool { return o.id == objectID })
	said := []*Probe{a.probe}
	if own.Connector.Hash != a.probe.op.Connector.Hash {
		said = append(said, own.listings()...)
		if len(said) == 1 || own.secretRequest() || a.probe.ours.readsAny("account", "header", "mutation") {
			return true
		}
	}
	return i < 0 || other.Request == nil || slices.ContainsFunc(said, func(p *Probe) bool {
		s := p.op.scope(other)
		s.resp, s.found = a.found[i].page, a.found[i].item
		ours, err := p.ours.test(s)
		return err != nil || ours || p.ours.readsAny("steps")
	})
}

// listings are the probes and steps that find objects.
func (op *Operation) listings() (out []*Probe) {
	for _, s := range op.Strategies {
		if s.Probe != nil {
			out = append(out, s.Probe.reads()...)
		}
	}
	return slices.DeleteFunc(out, func(p *Probe) bool { return p.ours == nil })
}

// errLink is a Link field that can't be read. It may hide a next page, so it is
// never taken for none.
var errLink = errors.New("the Link field can't be read")

// nextLink finds the target of rel=next among Link fields (RFC 8288 §3).
func nextLink(h http.Header) (target string, found bool, _ error) {
	for _, line := range h["Link"] {
		for line = skipLinkSpace(line); line != ""; line = skipLinkSpace(line) {
			one, after, ok := strings.Cut(line, ">")
			one, open := strings.CutPrefix(one, "<")
			if !ok || !open {
				return "", false, errLink
			}
			params, rest, err := cutParams(after)
			if err != nil {
				return "", false, err
			}
			if relatesNext(params) {
				return one, true, nil
			}
			line = rest
		}
	}
	return "", false, nil
}

// skipLinkSpace skips what may stand between links.
func skipLinkSpace(s string) string { return strings.TrimLeft(s, " \t,") }

// cutParams splits the parameters of one link from the rest of the line.
func cutParams(s string) (params []string, rest string, _ error) {
	quoted, start := false, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			params, start = append(params, s[start:i]), i+1
		case c == ',':
			params, rest = append(params, s[start:i]), s[i+1:]
			return params[1:], rest, beforeParams(params[0])
		}
	}
	if quoted {
		return nil, "", errLink
	}
	params = append(params, s[start:])
	return params[1:], "", beforeParams(params[0])
}

// beforeParams checks that nothing stands between a target and its parameters.
func beforeParams(s string) error {
	if strings.TrimSpace(s) != "" {
		return errLink
	}
	return nil
}

// relatesNext finds next among the relation types of a link.
func relatesNext(params []string) bool {
	for _, param := range params {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "rel") {
			continue
		}
		relations := strings.Fields(strings.ToLower(strings.Trim(strings.TrimSpace(value), "\"'")))
		return slices.Contains(relations, "next")
	}
	return false
}
