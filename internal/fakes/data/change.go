package data

import (
	"context"
	"fmt"
	"maps"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
)

// stopped is what ends a request without an answer: the log failed, or the server closes.
type stopped struct{ error }

// Unwrap is the reason.
func (s stopped) Unwrap() error { return s.error }

// serveChange takes in the key, and then makes the change. What can't be computed changes and keeps nothing.
func (f *Fake) serveChange(ctx context.Context, r *route, v values, c *server.Call) (*server.Answer, error) {
	use, answered, err := f.begin(r, v, c)
	if answered != nil || err != nil {
		return answered, err
	}
	settled := false
	defer func() {
		if use.key != "" && !settled {
			f.keys.Drop(use.scope, use.key)
		}
	}()
	if err := c.Pause(ctx); err != nil {
		return nil, stopped{err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look(r, v)
	changed, refused, err := f.changes(r, v)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		return f.answer(refused, v)
	}
	out, err := f.answer(&r.Answer, v)
	if err != nil {
		return nil, err
	}
	if c.Own != nil {
		out = c.Own
	}
	kept := f.file.Keys.keep(use, out)
	if err := f.record(r, v, c, changed, kept); err != nil {
		return nil, stopped{err}
	}
	if settled = kept != nil; settled {
		f.keys.Keep(*kept, c.Now())
	}
	return out, nil
}

// record makes durable what there is to: the change, or an answer that is kept without one.
func (f *Fake) record(r *route, v values, c *server.Call, changed []object, kept *oracle.Kept) error {
	as := r.Identity
	if r.Effect != nil {
		as = r.Effect
	}
	name := identity(r, as, v, c.Request)
	if c.NoEffect {
		if kept == nil {
			return nil
		}
		return c.Keep(name, kept)
	}
	if err := c.Commit(name, effect{r.does(), changed}, kept); err != nil {
		return err
	}
	for _, o := range changed {
		f.made[o.Kind] = max(f.made[o.Kind], o.Row)
		f.put(o)
	}
	return nil
}

// changes computes what the route changes, or the answer that refuses it. It gives values to object, n, id and items.
// The lock is held.
func (f *Fake) changes(r *route, v values) (changed []object, refused *answer, err error) {
	made := map[string]int{}
	for i, c := range append([]change{r.change}, r.Also...) {
		var old *object
		if c.Find != nil {
			if old, err = f.find(c.kind(), c.Find, v); err != nil {
				return nil, nil, err
			}
			if old == nil {
				return nil, missing(c.Missing), nil
			}
			v["object"] = old.Fields
		}
		if i == 0 {
			if refused, err = f.refused(r, v); refused != nil || err != nil {
				return nil, refused, err
			}
		}
		var some []object
		if old != nil {
			some, err = replaced(c, *old, v)
		} else {
			some, err = f.created(c, v, made)
		}
		if err != nil {
			return nil, nil, err
		}
		changed = append(changed, some...)
	}
	return changed, nil, nil
}

// replaced is the object as an update or a deletion leaves it.
func replaced(c change, o object, v values) ([]object, error) {
	if c.Delete != "" {
		o.Gone = true
		return []object{o}, nil
	}
	set, err := c.Set.object(v)
	if err != nil {
		return nil, err
	}
	o.Fields = maps.Clone(o.Fields)
	maps.Copy(o.Fields, set)
	v["object"] = o.Fields
	return []object{o}, nil
}

// created is a new object, or one of each element of a list. made counts those of this request by their kinds.
func (f *Fake) created(c change, v values, made map[string]int) (out []object, err error) {
	elements := []any{nil}
	if c.Each != nil {
		list, err := c.Each.eval(v)
		if err != nil {
			return nil, err
		}
		elements, _ = list.([]any)
	}
	items := []any{}
	for _, element := range elements {
		made[c.Create]++
		o := object{Kind: c.Create, Row: f.made[c.Create] + made[c.Create]}
		o.Scope, _ = v["scope"].(string)
		o.At, _ = v["now"].(time.Time)
		v["each"], v["n"], v["id"] = element, int64(f.from+o.Row), ""
		if c.ID != nil {
			if v["id"], err = c.ID.str(v); err != nil {
				return nil, err
			}
		}
		if o.Fields, err = c.Fields.object(v); err != nil {
			return nil, err
		}
		if _, own := o.Fields["id"]; !own && c.ID != nil {
			o.Fields["id"] = v["id"]
		}
		v["object"] = o.Fields
		items = append(items, o.Fields)
		out = append(out, o)
	}
	v["items"] = items
	return out, nil
}

// object computes the members of an object, as JSON has them; none for nil.
func (t *template) object(v values) (map[string]any, error) {
	if t == nil {
		return map[string]any{}, nil
	}
	out, err := t.eval(v)
	if err != nil {
		return nil, err
	}
	members, ok := stored(out).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("fields and set are a map, not %v", out)
	}
	return members, nil
}
