package ledger

import (
	"maps"
	"reflect"
	"testing"
	"time"
)

// fill sets every field of v to something, and every pointer, slice and map to
// one with content, so that a copy that shares one is found.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1e9, 0).UTC()))
			return
		}
		for _, field := range v.Fields() {
			fill(t, field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 2))
		fill(t, v.Index(0))
	case reflect.Array:
		v.Index(0).SetUint(1)
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, k)
		fill(t, e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	default:
		t.Fatalf("a field of kind %s", v.Kind())
	}
}

// shared reports the path of a pointer, slice or map that a and b share.
func shared(a, b reflect.Value, path string) string {
	switch a.Kind() {
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			return path
		}
		return shared(a.Elem(), b.Elem(), path)
	case reflect.Slice:
		if a.Pointer() == b.Pointer() {
			return path
		}
		return shared(a.Index(0), b.Index(0), path+"[0]")
	case reflect.Map:
		if a.Pointer() == b.Pointer() {
			return path
		}
		k := a.MapKeys()[0]
		return shared(a.MapIndex(k), b.MapIndex(k), path+"[]")
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[time.Time]() {
			return ""
		}
		for i := range a.NumField() {
			if p := shared(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name); p != "" {
				return p
			}
		}
	}
	return ""
}

func TestClonesShareNothing(t *testing.T) {
	t.Parallel()
	var m Mutation
	var r Run
	var i Item
	for _, c := range []struct {
		name  string
		of    any
		clone func() any
	}{
		{"mutation", &m, func() any { return m.Clone() }},
		{"run", &r, func() any { return r.Clone() }},
		{"item", &i, func() any { return i.Clone() }},
	} {
		fill(t, reflect.ValueOf(c.of).Elem())
		got := c.clone()
		if !reflect.DeepEqual(c.of, got) {
			t.Errorf("%s: the copy differs: %+v", c.name, got)
		}
		if p := shared(reflect.ValueOf(c.of), reflect.ValueOf(got), c.name); p != "" {
			t.Errorf("the copy shares %s", p)
		}
	}
	// The next version shares with the one before it, but with nobody else.
	old := m.Clone()
	next := m.CloneAfter(old)
	if p := shared(reflect.ValueOf(&m), reflect.ValueOf(next), "mutation"); p != "" {
		t.Errorf("the copy shares %s with what it is of", p)
	}
	if got := shared(reflect.ValueOf(old), reflect.ValueOf(next), "mutation"); got != "mutation.Intent.Identity" {
		t.Errorf("the copy shares %q with the version before, want the identity", got)
	}
	if old.Identity = nil; shared(reflect.ValueOf(old.Request), reflect.ValueOf(next.Request), "request") != "request.Header" {
		t.Error("the copy doesn't share the request's fields with the version before")
	}
	if old.Request.Header = nil; shared(reflect.ValueOf(old.Result.Header), reflect.ValueOf(next.Result.Header), "header") != "header" {
		t.Error("the copy doesn't share the answer's fields with the version before")
	}
	m.Identity, m.Request.Header = map[string]string{"y": "x"}, Header{"y": {"x"}}
	if got := m.CloneAfter(next); !reflect.DeepEqual(got, &m) {
		t.Errorf("the copy of another version differs: %+v", got)
	}
	if (*Mutation)(nil).Clone() != nil || (*Run)(nil).Clone() != nil || (*Item)(nil).Clone() != nil {
		t.Error("the copy of nothing is something")
	}
}

func TestADraftSharesWhatNoCommandChangesAndNothingElse(t *testing.T) {
	t.Parallel()
	var m Mutation
	fill(t, reflect.ValueOf(&m).Elem())
	draft := m.Draft()
	if !reflect.DeepEqual(&m, draft) {
		t.Errorf("the draft differs: %+v", draft)
	}
	for _, one := range []struct {
		name  string
		of    func(*Mutation) any
		renew func()
	}{
		{"the identity", func(m *Mutation) any { return m.Identity }, func() { draft.Identity = maps.Clone(m.Identity) }},
		{"the request's fields", func(m *Mutation) any { return m.Request.Header }, func() { draft.Request.Header = m.Request.Header.Clone() }},
		{"the answer's fields", func(m *Mutation) any { return m.Result.Header }, func() { draft.Result.Header = m.Result.Header.Clone() }},
		{"the answer's trailer", func(m *Mutation) any { return m.Result.Trailer }, func() { draft.Result.Trailer = m.Result.Trailer.Clone() }},
	} {
		if shared(reflect.ValueOf(one.of(&m)), reflect.ValueOf(one.of(draft)), "it") != "it" {
			t.Errorf("the draft doesn't share %s", one.name)
		}
		one.renew()
	}
	if p := shared(reflect.ValueOf(&m), reflect.ValueOf(draft), "mutation"); p != "" {
		t.Errorf("the draft shares %s", p)
	}
	if (*Mutation)(nil).Draft() != nil || (*Run)(nil).Draft() != nil || (*Item)(nil).Draft() != nil {
		t.Error("the draft of nothing is something")
	}
}

func TestWhatADraftAppendsIsItsOwn(t *testing.T) {
	t.Parallel()
	r := Run{Steady: make([]string, 1, 2)}
	i := Item{Changes: make([]ItemChange, 1, 2), Rules: make([]ItemRule, 1, 2), Drifts: make([]string, 1, 2)}
	run, item := r.Draft(), i.Draft()
	if !reflect.DeepEqual(&r, run) || !reflect.DeepEqual(&i, item) {
		t.Errorf("the drafts differ: %+v, %+v", run, item)
	}
	run.Steady = append(run.Steady, "x")
	item.Changes, item.Rules = append(item.Changes, ItemChange{Why: "x"}), append(item.Rules, ItemRule{Hash: "x"})
	item.Drifts = append(item.Drifts, "x")
	if r.Steady[:2][1] != "" || i.Changes[:2][1].Why != "" || i.Rules[:2][1].Hash != "" || i.Drifts[:2][1] != "" {
		t.Errorf("what a draft appends is written behind what it is of: %q, %+v", r.Steady[:2], i)
	}
}
