package badgerstore

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// readings are content as the reader has it, if it doesn't give up, and as the decoder does.
func readings[T any](content []byte, one func(*reader, *T)) (read T, whole bool, decoded T, err error) {
	r := newReader(content)
	one(r, &read)
	return read, r.whole(), decoded, decode([]byte("x"), content, &decoded)
}

// agree reports what the reader takes that the decoder refuses, or reads otherwise.
func agree[T any](t *testing.T, content []byte, one func(*reader, *T)) (whole bool) {
	t.Helper()
	read, whole, decoded, err := readings(content, one)
	switch {
	case whole && err != nil:
		t.Errorf("read, but no %T by the decoder, %v:\n%x", read, err, content)
	case whole && !reflect.DeepEqual(read, decoded):
		t.Errorf("read otherwise:\n got  %#v\n want %#v\n from %x", read, decoded, content)
	}
	return whole
}

// likeDecoder holds T, with all of it set, and with each field zero in turn, against the
// decoder.
func likeDecoder[T any](t *testing.T, one func(*reader, *T)) {
	t.Helper()
	check := func(what string, v *T) {
		t.Helper()
		content, err := encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if !agree(t, content, one) {
			t.Errorf("the reader gives up %T with %s: add what is new in it to readrecord.go", *v, what)
		}
	}
	full := new(T)
	fillAll(reflect.ValueOf(full).Elem(), 1)
	check("all", full)
	each(reflect.ValueOf(full).Elem(), func(f reflect.Value) {
		was := reflect.New(f.Type()).Elem()
		was.Set(f)
		f.SetZero()
		switch any(*full).(type) {
		case storedMutation:
			// Without a record it is damage, which the decoder tells.
			if f.Type() == reflect.TypeFor[storedMutation]() || f.Type() == reflect.TypeFor[*ledger.Mutation]() {
				f.Set(was)
				return
			}
		}
		check("a zero "+f.Type().String(), full)
		f.Set(was)
	})
}

func TestTheReaderReadsWhatTheDecoderWould(t *testing.T) {
	likeDecoder(t, (*reader).storedMutation)
	likeDecoder(t, (*reader).event)
	likeDecoder(t, (*reader).delivery)
	likeDecoder(t, (*reader).item)
	for _, state := range []ledger.State{ledger.InFlight, ledger.NeedsReconcile, ledger.Applied, ledger.Failed} {
		content, err := encode(&storedMutation{Record: ledgertest.SampleMutation("sample", state, 3), History: []byte{}})
		if err != nil {
			t.Fatal(err)
		}
		if !agree(t, content, (*reader).storedMutation) {
			t.Errorf("the reader gives up a record in state %s", state)
		}
	}
}

// broken calls fn with content that is cut at, and has other bytes in, each place.
func broken(content []byte, fn func([]byte)) {
	for at := range content {
		fn(content[:at])
		for _, b := range []byte{0, 1, content[at] ^ 0x01, content[at] ^ 0x20, content[at] ^ 0x80, 0x9f, 0xc0, 0xf6, 0xff, '9'} {
			other := bytes.Clone(content)
			other[at] = b
			fn(other)
		}
		fn(append(bytes.Clone(content[:at]), content[min(at+1, len(content)):]...))
	}
	fn(append(bytes.Clone(content), 0xf6))
}

func TestTheReaderTakesNothingThatTheDecoderRefuses(t *testing.T) {
	event := ledger.Event{Seq: 5, At: time.Unix(1_800_000_000, 12_000_000), Actor: "a", What: "w", Escalation: -7, EscalationClosed: true}
	delivery := ledger.Delivery{At: time.Unix(1_800_000_000, 0), State: ledger.Applied, Begun: true}
	sample := ledgertest.SampleMutation("sample", ledger.NeedsReconcile, 3)
	stored := func(v any) []byte {
		content, err := encode(v)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	broken(stored(&storedMutation{Record: sample, History: []byte{1, 2}}), func(b []byte) { agree(t, b, (*reader).storedMutation) })
	broken(stored(event), func(b []byte) { agree(t, b, (*reader).event) })
	broken(stored(delivery), func(b []byte) { agree(t, b, (*reader).delivery) })
	item := ledger.Item{
		ID: "i-1", State: ledger.ItemOpen, Attempt: 1, OpenedAt: time.Unix(1_800_000_000, 0),
		Rules: []ledger.ItemRule{{Connector: "c", Operation: "o", Hash: "h"}, {Connector: "c", Operation: "o", Hash: "h", Hosts: "a b"}}, Drifts: []string{"d"},
	}
	broken(stored(item), func(b []byte) { agree(t, b, (*reader).item) })
}

func TestTheReaderLeavesOtherFormsToTheDecoder(t *testing.T) {
	for name, content := range map[string][]byte{
		"a field twice":              {0xa2, 0x04, 0x61, 'a', 0x04, 0x61, 'b'},
		"a field of no number":       {0xa1, 0x19, 0xff, 0xff, 0x00},
		"a field of another number":  {0xa1, 0x18, 0x63, 0x00},
		"a map without an end":       {0xbf, 0x04, 0x61, 'a', 0xff},
		"a null in a text's place":   {0xa1, 0x04, 0xf6},
		"a number that is too large": append([]byte{0xa1, 0x0e, 0x1b}, bytes.Repeat([]byte{0xff}, 8)...),
		"a day that isn't":           append([]byte{0xa1, 0x02, 0x74}, "2026-02-30T00:00:00Z"...),
		"a month that isn't":         append([]byte{0xa1, 0x02, 0x74}, "2026-13-01T00:00:00Z"...),
		"an hour that isn't":         append([]byte{0xa1, 0x02, 0x74}, "2026-01-01T24:00:00Z"...),
		"a minute that isn't":        append([]byte{0xa1, 0x02, 0x74}, "2026-01-01T00:60:00Z"...),
		"a second that isn't":        append([]byte{0xa1, 0x02, 0x74}, "2026-01-01T00:00:60Z"...),
		"a time of another place":    append([]byte{0xa1, 0x02, 0x78, 25}, "2026-01-01T00:00:00+01:00"...),
		"more after the end":         {0xa0, 0x00},
		"a head of no known length":  append([]byte{0xa1, 0x01, 0x1c}, make([]byte, 16)...),
		"a time without a zone":      append([]byte{0xa1, 0x02, 0x73}, "2026-01-01T00:00:00"...),
		"a time that ends early":     append([]byte{0xa1, 0x02, 0x73}, "2026-01-01T00:00:0Z"...),
		"a time that is too long":    append([]byte{0xa1, 0x02, 0x78, 31}, "2026-01-01T00:00:00.1234567890Z"...),
		"fields without end":         {0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if agree(t, content, (*reader).event) {
			t.Errorf("%s was read", name)
		}
	}
	// What is unusual is read all the same, by the decoder.
	var e ledger.Event
	content := append([]byte{0xbf, 0x02, 0x78, 25}, "2026-01-01T00:00:00+01:00\xff"...)
	if err := read([]byte("e"), content, &e, (*reader).event); err != nil || e.At.IsZero() {
		t.Errorf("%v, %v", e.At, err)
	}
	twice := []byte{0xa2, 0x04, 0x61, 'a', 0x04, 0x61, 'b'}
	if err := read([]byte("e"), twice, &e, (*reader).event); !isDamage(err) {
		t.Errorf("a field twice: %v", err)
	}
}

// in is content of a record in which the field of this number is value.
func in(number byte, value ...byte) []byte {
	return append([]byte{0x82, 0xa1, 0x18, number}, append(value, 0xf6)...)
}

func TestTheReaderLeavesOtherFormsOfARecordToTheDecoder(t *testing.T) {
	huge := func(major byte) []byte { return []byte{major | 27, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }
	key := func(n byte) []byte {
		return append([]byte{0x82, 0xa1, 0x01, 0x58, n}, append(make([]byte, n), 0xf6)...)
	}
	for name, content := range map[string][]byte{
		"names that are none":              in(45, 0xa0),
		"more names than there can be":     in(45, huge(0xa0)...),
		"a name twice":                     in(45, 0xa2, 0x61, 'a', 0x61, 'b', 0x61, 'a', 0x61, 'c'),
		"texts without end":                in(19, huge(0x80)...),
		"a text that is longer than all":   in(18, huge(0x60)...),
		"more dispatches than can be":      in(40, huge(0x80)...),
		"a list of no dispatches":          in(40, 0x80),
		"an undefined in a null's place":   in(27, 0xf7),
		"an escalation of another form":    in(42, 0x61, 'a'),
		"one that could be the history":    {0x82, 0xa1, 0x18, 42, 0x41, 0x00},
		"a stamp that is cut":              in(35, 0x41, 0x00),
		"a header field twice":             in(38, 0xa1, 0x03, 0xa2, 0x61, 'a', 0x80, 0x61, 'a', 0x80),
		"a key that is too short":          key(31),
		"fields of a record without end":   append([]byte{0x82}, huge(0xa0)...),
		"a policy with fields without end": in(37, huge(0xa0)...),
	} {
		if agree(t, content, (*reader).storedMutation) {
			t.Errorf("%s was read", name)
		}
	}
	// One that is longer is cut by both.
	agree(t, key(33), (*reader).storedMutation)
}

func TestTheReaderReadsNumbersAsTheDecoderDoes(t *testing.T) {
	for _, n := range []int64{0, 23, 24, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64} {
		for _, n := range []int64{n, -n, ^n} {
			content, err := encode(&ledger.Event{Seq: uint64(n), Escalation: int(n), At: time.Unix(n%1_000_000_000, n&0xfffff)})
			if err != nil {
				t.Fatal(err)
			}
			if !agree(t, content, (*reader).event) {
				t.Errorf("the reader gives up %d", n)
			}
		}
	}
}

// sampleEvents are three events of one commit, as they are stored.
func sampleEvents(t *testing.T) []byte {
	t.Helper()
	stored := storedEvents{Before: [32]byte{1, 2}}
	for seq := range uint64(3) {
		event, err := encode(&ledger.Event{Seq: seq + 7, At: time.Unix(1_800_000_000, 1), Actor: "proxy", What: "claim", Mutation: "m-1"})
		if err != nil {
			t.Fatal(err)
		}
		stored.Events = append(stored.Events, cbor.RawMessage(event))
	}
	content, err := encode(stored)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestTheReaderChainsEventsAsTheDecoderDoes(t *testing.T) {
	check := func(content []byte) (whole bool) {
		r := newReader(content)
		var got chainedEvents
		r.storedEvents(&got)
		want, err := decodeEvents([]byte("E12345678"), content)
		switch {
		case r.whole() && err != nil:
			t.Errorf("read, but by the decoder %v:\n%x", err, content)
		case r.whole() && len(got.block)+len(want.block) > 0 && !reflect.DeepEqual(got, want):
			t.Errorf("read otherwise:\n got  %#v\n want %#v", got, want)
		}
		return r.whole()
	}
	content := sampleEvents(t)
	if !check(content) {
		t.Error("the reader gives them up")
	}
	broken(content, func(b []byte) { check(b) })
}

func FuzzReader(f *testing.F) {
	for _, state := range []ledger.State{ledger.InFlight, ledger.NeedsReconcile, ledger.Applied} {
		m := ledgertest.SampleMutation("a", state, 0)
		for _, v := range []any{&storedMutation{Record: m, History: []byte{1, 2}}, &ledger.Event{Seq: 1, Actor: "a"}, &ledger.Delivery{Begun: true}, &ledger.Item{ID: "i"}} {
			b, err := encode(v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		agree(t, content, (*reader).storedMutation)
		agree(t, content, (*reader).event)
		agree(t, content, (*reader).delivery)
		agree(t, content, (*reader).item)
	})
}

// BenchmarkReader compares the two on an applied record.
func BenchmarkReader(b *testing.B) {
	m := ledgertest.SampleMutation("sample", ledger.Applied, 3)
	m.Result = &ledger.Result{Status: 200, Header: m.Request.Header}
	content, err := encode(&storedMutation{Record: m})
	if err != nil {
		b.Fatal(err)
	}
	for name, one := range map[string]func(*reader, *storedMutation){
		"reader": (*reader).storedMutation, "decoder": func(r *reader, _ *storedMutation) { r.strange = true },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var s storedMutation
				if err := read([]byte("m"), content, &s, one); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
