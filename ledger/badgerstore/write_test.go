package badgerstore

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// encodings are v as the writer has it, and as the encoder does.
func encodings(t *testing.T, v any) (written, encoded []byte) {
	t.Helper()
	var a, b bytes.Buffer
	// The writer appends to what is there.
	a.WriteString("before")
	if err := encodeTo(&a, v); err != nil {
		t.Fatal(err)
	}
	if err := encodeAny(&b, v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimPrefix(a.Bytes(), []byte("before")), b.Bytes()
}

// fillAll gives v, and all in it, other values than the zero ones; maps and slices hold
// one element, so that there is one order.
func fillAll(v reflect.Value, n int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1_800_000_000+int64(n), int64(n)*1_000_003)))
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
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAll(v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			fillAll(v.Index(i), n+i)
		}
	case reflect.Map:
		name, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillAll(name, n)
		fillAll(value, n+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(name, value)
	case reflect.String:
		v.SetString(string(bytes.Repeat([]byte("ä"), n%300)) + "x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n)%251 + 1)
	default:
		v.SetInt(int64(n)*int64(n)*7919 + 1)
	}
}

// each calls fn for every field of v, also in what it holds.
func each(v reflect.Value, fn func(reflect.Value)) {
	if !v.CanSet() {
		return
	}
	fn(v)
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
	case v.Kind() == reflect.Pointer:
		each(v.Elem(), fn)
	case v.Kind() == reflect.Struct:
		for _, f := range v.Fields() {
			each(f, fn)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			each(v.Index(i), fn)
		}
	}
}

// alike reports whether both are the same bytes but for the order of fields, which may
// differ where the writer doesn't know one.
func alike[T any](t *testing.T, got, want []byte) bool {
	t.Helper()
	if bytes.Equal(got, want) {
		return true
	}
	var a, b T
	if err := errors.Join(decode([]byte("got"), got, &a), decode([]byte("want"), want, &b)); err != nil {
		t.Error(err)
	}
	return len(got) == len(want) && reflect.DeepEqual(a, b)
}

// likeEncoder holds T, with all of it set, with each field zero in turn, and with one
// alone, against the encoder.
func likeEncoder[T any](t *testing.T) {
	t.Helper()
	check := func(what string, v *T) {
		t.Helper()
		if got, want := encodings(t, v); !alike[T](t, got, want) {
			t.Errorf("%T with %s:\n got  %x\n want %x", *v, what, got, want)
		}
	}
	check("nothing", new(T))
	full := new(T)
	fillAll(reflect.ValueOf(full).Elem(), 1)
	check("all", full)
	each(reflect.ValueOf(full).Elem(), func(f reflect.Value) {
		was := reflect.New(f.Type()).Elem()
		was.Set(f)
		f.SetZero()
		check("a zero "+f.Type().String(), full)
		f.Set(was)
	})
	for i := range reflect.TypeFor[T]().NumField() {
		one := new(T)
		if f := reflect.ValueOf(one).Elem().Field(i); f.CanSet() {
			fillAll(f, i+300)
			check(reflect.TypeFor[T]().Field(i).Name+" alone", one)
		}
	}
}

func TestTheWriterWritesWhatTheEncoderWould(t *testing.T) {
	for _, list := range [][]unwritten{
		moreOfMutation, moreOfScope, moreOfPolicy, moreOfRequest, moreOfResult, moreOfBody, moreOfDispatch, moreOfObservation, moreOfEvent, moreOfDelivery,
		moreOfTip, moreOfCommit, moreOfHighMark, moreOfBodyHead,
		moreOfItem, moreOfItemRule,
	} {
		for _, u := range list {
			t.Logf("field %v is written by reflection: add it to writerecord.go", u.key)
		}
	}
	likeEncoder[storedMutation](t)
	likeEncoder[ledger.Event](t)
	likeEncoder[ledger.Delivery](t)
	likeEncoder[storedCommit](t)
	likeEncoder[highMark](t)
	likeEncoder[bodyHead](t)
	likeEncoder[ledger.Item](t)
	for _, state := range []ledger.State{ledger.InFlight, ledger.NeedsReconcile, ledger.Applied} {
		m := ledgertest.SampleMutation("sample", state, 3)
		m.Request.Header = ledger.Header{"Accept": {"a", "b"}}
		for _, values := range [][]string{nil, {}} {
			m.Result = &ledger.Result{Header: ledger.Header{"Via": values}}
			if got, want := encodings(t, &storedMutation{Record: m, History: []byte{1, 2}}); !bytes.Equal(got, want) {
				t.Errorf("a record in state %s:\n got  %x\n want %x", state, got, want)
			}
		}
	}
}

func TestTheWriterWritesEventsAsTheEncoderDoes(t *testing.T) {
	if n := reflect.TypeFor[storedEvents]().NumField(); n != 3 {
		t.Errorf("storedEvents has %d fields; the writer knows 3", n)
	}
	one, err := encode(&ledger.Event{Seq: 7, What: "claimed"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 30 {
		s := &storedEvents{Before: [32]byte{1, 2, 3}, Events: make([]cbor.RawMessage, 0, n)}
		for range n {
			s.Events = append(s.Events, one)
		}
		if got, want := encodings(t, s); !bytes.Equal(got, want) {
			t.Errorf("%d events:\n got  %x\n want %x", n, got, want)
		}
	}
}

func TestAFieldThatTheWriterDoesNotKnowIsWritten(t *testing.T) {
	type grown struct {
		ledger.Scope
		Known int            `cbor:"1,keyasint"`
		New   map[string]int `cbor:"3,keyasint,omitempty"`
		Zero  int            `cbor:"4,keyasint"`
		Other string         `cbor:"9,keyasint,omitempty"`
		Named time.Time      `json:"named,omitzero"`
		Plain int
	}
	list, names := more[grown](1, 9), []any{}
	for _, u := range list {
		names = append(names, u.key)
	}
	if want := []any{3, 4, "named", "Plain"}; !reflect.DeepEqual(names, want) {
		t.Fatalf("it doesn't know %v, want %v", names, want)
	}
	for _, v := range []grown{{}, {New: map[string]int{}}, {New: map[string]int{"a": 1}, Zero: 2, Named: time.Unix(5, 0).UTC(), Plain: 3}} {
		var w writer
		f := w.begin()
		f.more(list, &v)
		f.end()
		var got grown
		if err := decode([]byte("grown"), w.b, &got); err != nil {
			t.Fatal(err)
		}
		if len(v.New) == 0 {
			v.New = nil
		}
		if !reflect.DeepEqual(got, v) {
			t.Errorf("got %+v, want %+v", got, v)
		}
	}
}

func TestTheWriterWritesNumbersAndTimesAsTheEncoderDoes(t *testing.T) {
	numbers := []int64{0, 23, 24, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64}
	for _, n := range numbers {
		for _, n := range []int64{n, -n, ^n} {
			if got, want := encodings(t, &ledger.Event{Seq: uint64(n), Escalation: int(n)}); !bytes.Equal(got, want) {
				t.Errorf("%d: got %x, want %x", n, got, want)
			}
		}
	}
	east := time.FixedZone("east", 3600)
	for _, at := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(-1, 5), time.Unix(1, 100_000_000).In(east), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(12, 1, 1, 0, 0, 0, 0, east),
	} {
		if got, want := encodings(t, &ledger.Delivery{At: at}); !bytes.Equal(got, want) {
			t.Errorf("%s: got %x, want %x", at, got, want)
		}
	}
}

// BenchmarkWriter compares the two on an applied record, and on the events of 16 commands.
func BenchmarkWriter(b *testing.B) {
	m := ledgertest.SampleMutation("sample", ledger.Applied, 3)
	m.Result = &ledger.Result{Status: 200, Header: m.Request.Header}
	one, err := encode(&ledger.Event{Seq: 1, Why: string(bytes.Repeat([]byte("w"), 300))})
	if err != nil {
		b.Fatal(err)
	}
	events := &storedEvents{}
	for range 16 {
		events.Events = append(events.Events, one)
	}
	for what, v := range map[string]any{"record": &storedMutation{Record: m}, "events": events} {
		for name, encode := range map[string]func(*bytes.Buffer, any) error{"writer": encodeTo, "encoder": encodeAny} {
			b.Run(what+"/"+name, func(b *testing.B) {
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
}
