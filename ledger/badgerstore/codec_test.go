package badgerstore

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// fillAll gives v, and all in it, other values than the zero ones. Maps and slices hold several.
func fillAll(v reflect.Value, n int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1_800_000_000+int64(n), int64(n)*1_000_003).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fillAll(f, n+i+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fillAll(v.Index(i), n+i)
		}
	case reflect.Array:
		for i := range v.Len() {
			fillAll(v.Index(i), n+i)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 9 {
			name, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fillAll(name, n+i)
			fillAll(value, n+i+1)
			v.SetMapIndex(name, value)
		}
	case reflect.String:
		v.SetString(fmt.Sprint("ä", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n)%251 + 1)
	default:
		v.SetInt(int64(n)*int64(n)*7919 + 1)
	}
}

// isStored looks that each field of a T is there again after it was stored, that the same
// value is always the same bytes, and that content of another form is refused.
func isStored[T any](t *testing.T) {
	t.Helper()
	full := new(T)
	fillAll(reflect.ValueOf(full).Elem(), 1)
	for name, v := range map[string]*T{"all": full, "nothing": new(T)} {
		content := encoded(t, v)
		var got T
		if err := decode([]byte("k"), content, &got); err != nil {
			t.Errorf("%T with %s: %v", got, name, err)
		} else if !reflect.DeepEqual(&got, v) {
			t.Errorf("%T with %s:\n got  %+v\n want %+v", got, name, got, *v)
		}
		for range 3 {
			if again := encoded(t, v); !bytes.Equal(again, content) {
				t.Errorf("%T with %s: the bytes differ:\n%x\n%x", got, name, content, again)
			}
		}
	}
	content := encoded(t, full)
	for at := range content {
		if err := decode([]byte("k"), content[:at], new(T)); !errors.Is(err, ledger.ErrDamaged) {
			t.Fatalf("%T, cut after %d bytes: %v", *full, at, err)
		}
	}
	if err := decode([]byte("k"), append(content, 0xf6), new(T)); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("%T with something behind it: %v", *full, err)
	}
}

func TestEachFieldIsStored(t *testing.T) {
	t.Parallel()
	isStored[storedMutation](t)
	isStored[ledger.Run](t)
	isStored[ledger.Item](t)
	isStored[ledger.Event](t)
	isStored[ledger.Delivery](t)
	isStored[ledger.Gap](t)
	isStored[storedEvents](t)
	isStored[tip](t)
	isStored[foldRecord](t)
	isStored[bodyHead](t)
}

func TestWhatTheEncoderNeverWritesIsDamage(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{
		"a field twice":              {0xa2, 0x04, 0x61, 'a', 0x04, 0x61, 'b'},
		"a map without an end":       {0xbf, 0x04, 0x61, 'a', 0xff},
		"a text in pieces":           {0xa1, 0x04, 0x7f, 0x61, 'a', 0xff},
		"a tag":                      append([]byte{0xa1, 0x02, 0xc0, 0x74}, "2026-01-01T00:00:00Z"...),
		"a number that is too large": append([]byte{0xa1, 0x0e, 0x1b}, bytes.Repeat([]byte{0xff}, 8)...),
		"a day that isn't":           append([]byte{0xa1, 0x02, 0x74}, "2026-02-30T00:00:00Z"...),
		"more after the end":         {0xa0, 0x00},
		"fields without end":         {0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if err := decode([]byte("e"), content, new(ledger.Event)); !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What content of any form is read as is damage, a later program's, or can be written again.
func FuzzDecode(f *testing.F) {
	m := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
	for _, v := range []any{
		storedMutation{Record: m, History: []byte{1, 2}}, ledger.Event{Seq: 1, Actor: "a"}, ledger.Delivery{Begun: true},
		ledgertest.SampleRun("a", 0), ledgertest.SampleItem("a", 0), storedEvents{Events: [][]byte{{0xa0}}},
	} {
		f.Add(encoded(f, v))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, read := range []func([]byte) (any, error){
			func(b []byte) (any, error) {
				e, err := decodeMutation([]byte("m"), b)
				return storedMutation{Record: e.Mutation, History: e.history}, err
			},
			func(b []byte) (any, error) { return decodeRun([]byte("r"), b) },
			func(b []byte) (any, error) { return decodeItem([]byte("i"), b) },
			func(b []byte) (any, error) { d := new(ledger.Delivery); return d, decode([]byte("d"), b, d) },
			func(b []byte) (any, error) { c, err := chainEvents(numbered(kEvents, 1), b); return len(c.block), err },
		} {
			v, err := read(content)
			if err == nil {
				encoded(t, v)
			} else if !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, ledger.ErrFormat) {
				t.Errorf("refused, but neither as damage nor as a later program's: %v", err)
			}
		}
	})
}

// benchmarked are an applied record, and the events of 16 commands.
func benchmarked(b *testing.B) map[string]any {
	b.Helper()
	m := ledgertest.SampleMutation("sample", ledger.Applied, 3)
	m.Result = &ledger.Result{Status: 200, Header: m.Request.Header}
	events := &storedEvents{}
	for range 16 {
		events.Events = append(events.Events, encoded(b, &ledger.Event{Seq: 1, Why: string(bytes.Repeat([]byte("w"), 300))}))
	}
	return map[string]any{"record": &storedMutation{Record: m}, "events": events}
}

func BenchmarkEncode(b *testing.B) {
	for what, v := range benchmarked(b) {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			var buffer bytes.Buffer
			for b.Loop() {
				buffer.Reset()
				if err := encode(&buffer, v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for what, v := range benchmarked(b) {
		content := encoded(b, v)
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				into := reflect.New(reflect.TypeOf(v).Elem()).Interface()
				if err := decode([]byte("k"), content, into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A run that an earlier version stored failed by one mutation.
func TestARunThatFailedByOneMutationIsRead(t *testing.T) {
	t.Parallel()
	key, until := ledger.Key{1, 2}, ledgertest.Epoch.Add(time.Minute)
	content := encoded(t, struct {
		ID            string          `json:"id"`
		State         ledger.RunState `json:"state"`
		FailingKey    *ledger.Key     `json:"failing_key,omitempty"`
		FailingDigest string          `json:"failing_digest,omitempty"`
		FailingUntil  time.Time       `json:"failing_until,omitzero"`
		FailingTries  int             `json:"failing_tries,omitempty"`
	}{"r", ledger.RunFailing, &key, "payload", until, 2})
	r, err := decodeRun([]byte("k"), content)
	if err != nil {
		t.Fatal(err)
	}
	if want := (ledger.Failing{FailingKey: key, FailingDigest: "payload", FailingUntil: until, FailingTries: 2}); r.Failing != want || len(r.FailingMore) > 0 {
		t.Errorf("got %+v and %d more", r.Failing, len(r.FailingMore))
	}
	if !ledger.AdmitMutation(r, key, "payload") || ledger.AdmitMutation(r, ledger.Key{3}, "payload") {
		t.Error("something else than that mutation may be tried again")
	}
	// One without a grace says nothing of one, so that the earlier version reads it too.
	if text := encoded(t, ledger.Run{ID: "r", State: ledger.RunRunning}); bytes.Contains(text, []byte("failing")) {
		t.Errorf("a run that isn't failing holds %q", text)
	}
}
