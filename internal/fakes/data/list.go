package data

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"keep-proxy/internal/fakes/server"
)

// serveRead answers a route that changes nothing. The lock is held.
func (f *Fake) serveRead(r *route, v values) (*server.Answer, error) {
	f.look(r, v)
	if a, err := f.refused(r, v); err != nil {
		return nil, err
	} else if a != nil {
		return f.answer(a, v)
	}
	if r.Get != "" {
		o, err := f.find(r.Get, r.Find, v)
		if err != nil {
			return nil, err
		}
		if o == nil {
			return f.answer(missing(r.Missing), v)
		}
		v["object"] = o.Fields
	}
	var link string
	if r.List != "" {
		var err error
		if link, err = f.list(r, v); err != nil {
			return nil, err
		}
	}
	out, err := f.answer(&r.Answer, v)
	if err == nil && link != "" {
		out.Header.Set("Link", link)
	}
	return out, err
}

// look gives a value to all, the objects of the scope by their kinds, and computes with anew. The lock is held.
func (f *Fake) look(r *route, v values) {
	all := map[string]any{}
	for _, kind := range f.file.kinds() {
		list := []any{}
		for _, o := range f.of(kind, v) {
			list = append(list, o.Fields)
		}
		all[kind] = list
	}
	v["all"] = all
	r.compute(v)
}

// of are the objects of a kind that the scope of the request has. Those of the seed are everybody's.
func (f *Fake) of(kind string, v values) (out []object) {
	for _, o := range f.objects {
		if o.Kind == kind && !o.Gone && (o.At.IsZero() || o.Scope == v["scope"]) {
			out = append(out, o)
		}
	}
	return out
}

// refused is the answer of the first refusal that holds.
func (f *Fake) refused(r *route, v values) (*answer, error) {
	for i := range r.Refuse {
		yes, err := r.Refuse[i].When.holds(v)
		if err != nil || yes {
			return &r.Refuse[i].Answer, err
		}
	}
	return nil, nil
}

// find is the first object of the kind for which the condition holds; nil for none.
func (f *Fake) find(kind string, condition *expr, v values) (*object, error) {
	with := maps.Clone(v)
	for _, o := range f.of(kind, v) {
		with["object"] = o.Fields
		yes, err := condition.holds(with)
		if err != nil {
			return nil, err
		}
		if yes {
			return &o, nil
		}
	}
	return nil, nil
}

func missing(a *answer) *answer { return orStatus(a, http.StatusNotFound) }

// list gives values to items, more, next, total and offset, and returns the Link field of the page.
func (f *Fake) list(r *route, v values) (link string, _ error) {
	found, err := f.selected(r, v)
	if err != nil {
		return "", err
	}
	at, size := 0, len(found)
	if r.Page != nil {
		if at, size, err = r.Page.cut(found, v); err != nil {
			return "", err
		}
	}
	end := min(at+size, len(found))
	items := []any{}
	for _, o := range found[min(at, end):end] {
		items = append(items, o.Fields)
	}
	v["items"], v["more"], v["total"], v["offset"], v["next"] = items, end < len(found), int64(len(found)), int64(at), ""
	if end >= len(found) {
		return "", nil
	}
	v["next"] = base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	if r.Page.Link == "" {
		return "", nil
	}
	query := url.Values{}
	all, _ := v["query_all"].(map[string]any)
	for name, list := range all {
		texts, _ := list.([]any)
		for _, text := range texts {
			query.Add(name, fmt.Sprint(text))
		}
	}
	query.Set(r.Page.Link, strconv.Itoa(end/max(size, 1)+1))
	return fmt.Sprintf("<%s?%s>; rel=\"next\"", v["url"], query.Encode()), nil
}

// selected are the objects that the list is about, in its order. What is younger than the lag isn't among them.
func (f *Fake) selected(r *route, v values) (out []object, err error) {
	with := maps.Clone(v)
	now, _ := v["now"].(time.Time)
	by := map[int]string{}
	for _, o := range f.of(r.List, v) {
		if !r.Strong && !o.At.IsZero() && now.Sub(o.At) < f.duration("lag") {
			continue
		}
		with["object"] = o.Fields
		if yes, err := r.Where.holds(with); err != nil {
			return nil, err
		} else if !yes {
			continue
		}
		if by[o.Row], err = r.Sort.str(with); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	slices.SortStableFunc(out, func(a, b object) int { return strings.Compare(by[a.Row], by[b.Row]) })
	back, err := r.Reverse.holds(v)
	if r.Reverse != nil && back {
		slices.Reverse(out)
	}
	return out, err
}

// errPage is a page that can't be: the API would refuse it, by a refusal of its route.
var errPage = errors.New("the page can't be read; refuse it in the route")

// cut is where the page begins, and how long it is.
func (p *page) cut(found []object, v values) (at, size int, err error) {
	if size, err = number(p.Size, v, p.Default); err != nil {
		return 0, 0, err
	}
	if p.Max > 0 {
		size = min(size, p.Max)
	}
	switch {
	case p.After != nil:
		var id string
		if id, err = p.After.str(v); err != nil || id == "" {
			return 0, size, err
		}
		i := slices.IndexFunc(found, func(o object) bool { return fmt.Sprint(o.Fields["id"]) == id })
		if i < 0 {
			return 0, 0, errPage
		}
		return i + 1, size, nil
	case p.Number != nil:
		at, err = number(p.Number, v, 1)
		return max(at-1, 0) * size, size, err
	case p.Offset != nil:
		at, err = number(p.Offset, v, 0)
		return max(at, 0), size, err
	case p.Cursor != nil:
		var token string
		if token, err = p.Cursor.str(v); err != nil || token == "" {
			return 0, size, err
		}
		text, _ := base64.RawURLEncoding.DecodeString(token)
		if at, err = strconv.Atoi(string(text)); err != nil {
			return 0, 0, errPage
		}
	}
	return at, size, nil
}

// number computes a number, or one that is given as text; without any it is the fallback.
func number(e *expr, v values, fallback int) (int, error) {
	text, err := e.str(v)
	if err != nil || text == "" {
		return fallback, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errPage
	}
	return n, nil
}
