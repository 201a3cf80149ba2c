package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// named1 rewrites a value of type t as format 1 stored it: the opposite of renumber.
func named1(t *testing.T, typ reflect.Type, v reflect.Value) any {
	t.Helper()
	switch {
	case typ == stampType:
		return namedStamp(v.Interface().(ledger.Stamp))
	case typ.Kind() == reflect.Pointer && typ.Elem().Kind() == reflect.Struct:
		if v.IsNil() {
			return nil
		}
		return named1(t, typ.Elem(), v.Elem())
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = named1(t, typ.Elem(), v.Index(i))
		}
		return out
	case typ.Kind() != reflect.Struct || typ == timeType:
		return v.Interface()
	}
	out := map[string]any{}
	for _, f := range reflect.VisibleFields(typ) {
		value := v.FieldByIndex(f.Index)
		if f.Anonymous || strings.Contains(f.Tag.Get("json"), ",omit") && value.IsZero() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out[name] = named1(t, f.Type, value)
	}
	return out
}

// full sets every field of v to something.
func full(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		full(v.Elem())
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(ledgertest.Epoch))
			return
		}
		for _, field := range v.Fields() {
			full(field)
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			full(v.Index(i))
		}
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		full(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("name"), value)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(7 * time.Second))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(9)
	default:
		panic("no value for " + v.Type().String())
	}
}

func fullOf[T any]() *T {
	v := new(T)
	full(reflect.ValueOf(v).Elem())
	return v
}

// TestFormat1IsReadAsItWasMeant stores values with every field set as format 1 did.
func TestFormat1IsReadAsItWasMeant(t *testing.T) {
	t.Parallel()
	m := fullOf[ledger.Mutation]()
	m.State = ledger.Indeterminate
	for name, c := range map[string]struct {
		want any
		read func(content []byte) (any, error)
	}{
		"a mutation": {m, func(b []byte) (any, error) { e, err := decodeMutation([]byte("m"), b); return e.Mutation, err }},
		"an event": {fullOf[ledger.Event](), func(b []byte) (any, error) {
			e := new(ledger.Event)
			return e, decodeNumbered([]byte("e"), b, e)
		}},
		"a delivery": {fullOf[ledger.Delivery](), func(b []byte) (any, error) {
			d := new(ledger.Delivery)
			return d, decodeNumbered([]byte("l"), b, d)
		}},
	} {
		v := reflect.ValueOf(c.want).Elem()
		old, err := encode(named1(t, v.Type(), v))
		if err != nil {
			t.Fatal(err)
		}
		if !ofNames(old) {
			t.Errorf("%s: not seen as one of format 1", name)
		}
		if got, err := c.read(old); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s of format 1: %+v, %v; want %+v", name, got, err, c.want)
		}
		now, err := encode(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if ofNames(now) {
			t.Errorf("%s of format 2 is taken for one of format 1", name)
		}
		if len(now) >= len(old) {
			t.Errorf("%s takes %d bytes instead of %d", name, len(now), len(old))
		}
	}
}

func TestFormat1IsReadStrictly(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]map[string]any{
		"an unknown field":         {"seq": 1, "colour": "red"},
		"a field of another type":  {"seq": "first"},
		"a moment that isn't time": {"seq": 1, "at": "noon"},
	} {
		b, err := encode(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := decodeNumbered([]byte("e"), b, new(ledger.Event)); !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
}

// TestStoredNumbersAreUnique holds the numbers that stand for fields.
func TestStoredNumbersAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == timeType || typ == stampType || seen[typ] {
			return
		}
		seen[typ] = true
		taken := map[any]string{}
		for name, f := range fieldsOf(typ) {
			if other, ok := taken[f.key]; ok {
				t.Errorf("%s: %s and %s are both stored as %v", typ, name, other, f.key)
			}
			taken[f.key] = name
			check(f.typ)
		}
	}
	check(reflect.TypeFor[ledger.Mutation]())
	check(reflect.TypeFor[ledger.Event]())
	check(reflect.TypeFor[ledger.Delivery]())
}

func TestHistory(t *testing.T) {
	t.Parallel()
	var h history
	var want []uint64
	for seq := uint64(3); ; seq += seq / 2 {
		next, ok := h.with(seq)
		if !ok {
			break
		}
		h, want = next, append(want, seq)
	}
	if got, err := h.seqs(); err != nil || !slices.Equal(got, want) || len(want) < 20 {
		t.Errorf("%d, %v; want %d", got, err, want)
	}
	if _, ok := history(nil).with(0); ok {
		t.Error("event 0 was taken")
	}
	short, _ := history(nil).with(5)
	if _, ok := short.with(5); ok {
		t.Error("an event was taken twice")
	}
	a, _ := short.with(6)
	b, _ := short.with(7)
	if bytes.Equal(a, b) {
		t.Error("two histories share what they were made of")
	}
	for _, bad := range []history{{0}, {0x80}, {1, 0}} {
		if _, err := bad.seqs(); err == nil {
			t.Errorf("%x is taken", []byte(bad))
		}
	}
}

// TestLongHistory lists events that the record takes, and those that it doesn't.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	m := ledgertest.SampleMutation("a", ledger.InFlight, 0)
	const changes = fullHistory + 20
	for i := range changes {
		m.Version = int64(i + 1)
		err := s.Update(t.Context(), func(tx ledger.Tx) error {
			tx.Append(ledger.Event{What: "claim", Mutation: m.ID})
			return tx.PutMutation(m)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := s.Update(t.Context(), func(tx ledger.Tx) error {
		tx.Append(ledger.Event{What: "replayed", Mutation: m.ID})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	for after := uint64(0); ; after = seqs[len(seqs)-1] {
		events, err := s.Events(t.Context(), m.ID, after, 50)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			seqs = append(seqs, e.Seq)
		}
	}
	if len(seqs) != changes+1 || !slices.IsSorted(seqs) {
		t.Errorf("%d events %v, want %d in order", len(seqs), seqs, changes+1)
	}
}

// TestUpgradeIsKilled ends the first process that opens a folder of an earlier format: after the
// upgrade's only step, and later, when records of both formats lie there.
func TestUpgradeIsKilled(t *testing.T) {
	t.Parallel()
	for n, point := range []string{
		"", "badgerstore.before_commit", "badgerstore.after_apply", "badgerstore.after_apply:20",
		"", "badgerstore.before_commit", "badgerstore.after_highwater", "badgerstore.after_highwater:20",
	} {
		fixture := []string{fixture1, fixture2}[n/4]
		t.Run(filepath.Base(fixture)+" "+point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			unpack(t, fixture, dir)
			var got []string
			if point == "" {
				upgradeOnly(t, testConfig(dir))
			} else {
				got = runChild(t, dir, point, 0)
			}
			s := mustOpen(t, testConfig(dir))
			for _, name := range []string{"applied", "unknown"} {
				if _, err := s.MutationByID(t.Context(), ledgertest.SampleMutation(name, ledger.Applied, 0).ID); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, n := range got {
				if _, err := s.MutationByID(t.Context(), ledgertest.SampleMutation(n, ledger.Applied, 0).ID); err != nil {
					t.Errorf("acknowledged record %s: %v", n, err)
				}
			}
			i, err := readIdentity(s.config.identityPath())
			if err != nil || i.Format != format || i.ID != "fixture" {
				t.Errorf("afterwards %+v, %v", i, err)
			}
		})
	}
}

// upgradeOnly does nothing beyond the upgrade itself.
func upgradeOnly(t *testing.T, c Config) {
	t.Helper()
	i, err := readIdentity(c.identityPath())
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{config: c, identity: i}
	if err := s.upgrade(); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyUpgradesNothing looks at a folder of format 1.
func TestVerifyUpgradesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack(t, fixture1, dir)
	c := testConfig(dir)
	if _, err := Verify(context.Background(), c, nil); err != nil {
		t.Fatal(err)
	}
	if i, err := readIdentity(c.identityPath()); err != nil || i.Format != 1 {
		t.Errorf("%+v, %v", i, err)
	}
}

func FuzzDecodeMutation(f *testing.F) {
	m := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
	for _, v := range []any{storedMutation{Record: m, History: []byte{1, 2}}, map[string]any{"state": "applied", "identity": map[string]string{"a": "1"}}} {
		b, err := encode(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		e, err := decodeMutation([]byte("m"), content)
		if err != nil {
			if !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, ledger.ErrFormat) {
				t.Errorf("refused, but neither as damage nor as a later program's: %v", err)
			}
			return
		}
		if _, err := encode(storedMutation{Record: e.Mutation, History: e.history}); err != nil {
			t.Errorf("read, but can't be written: %v", err)
		}
	})
}
