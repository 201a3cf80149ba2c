package badgerstore

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
)

// writer writes CBOR as the encoder of codec.go does, byte for byte, for the few types
// that each mutation stores: going through their fields by reflection is twice as dear.
// What is rare in them it leaves to that encoder.
type writer struct {
	b []byte
	// err is the first error of the encoder.
	err error
}

// Major types of CBOR.
const (
	cborUint   = 0x00
	cborNint   = 0x20
	cborBytes  = 0x40
	cborText   = 0x60
	cborArray  = 0x80
	cborMap    = 0xa0
	cborFalse  = 0xf4
	cborTrue   = 0xf5
	cborNull   = 0xf6
	cborInline = 24
)

// head writes a major type with its argument, in the fewest bytes.
func (w *writer) head(major byte, n uint64) {
	switch {
	case n < cborInline:
		w.b = append(w.b, major|byte(n))
	case n <= 0xff:
		w.b = append(w.b, major|24, byte(n))
	case n <= 0xffff:
		w.b = binary.BigEndian.AppendUint16(append(w.b, major|25), uint16(n))
	case n <= 0xffffffff:
		w.b = binary.BigEndian.AppendUint32(append(w.b, major|26), uint32(n))
	default:
		w.b = binary.BigEndian.AppendUint64(append(w.b, major|27), n)
	}
}

func (w *writer) text(s string) {
	w.head(cborText, uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) bytes(b []byte) {
	w.head(cborBytes, uint64(len(b)))
	w.b = append(w.b, b...)
}

func (w *writer) int(n int64) {
	if n < 0 {
		w.head(cborNint, uint64(-1-n))
		return
	}
	w.head(cborUint, uint64(n))
}

func (w *writer) bool(v bool) {
	if v {
		w.b = append(w.b, cborTrue)
		return
	}
	w.b = append(w.b, cborFalse)
}

func (w *writer) null() { w.b = append(w.b, cborNull) }

// time writes a moment in UTC as RFC 3339 has it, the zero one as null.
func (w *writer) time(t time.Time) {
	if t.IsZero() {
		w.null()
		return
	}
	at := len(w.b)
	w.b = append(w.b, 0, 0)
	w.b = t.UTC().AppendFormat(w.b, time.RFC3339Nano)
	if n := len(w.b) - at - 2; n < cborInline {
		w.b = slices.Delete(w.b, at, at+1)
		w.b[at] = cborText | byte(n)
	} else {
		w.b[at], w.b[at+1] = cborText|24, byte(n)
	}
}

// other leaves v to the encoder.
func (w *writer) other(v any) {
	var b bytes.Buffer
	if err := encoder.MarshalToBuffer(v, &b); err != nil && w.err == nil {
		w.err = err
	}
	w.b = append(w.b, b.Bytes()...)
}

// fields are the fields of a struct, under their numbers, as they are written.
type fields struct {
	*writer
	at, n int
}

// begin starts a struct; end must follow.
func (w *writer) begin() fields {
	w.b = append(w.b, 0)
	return fields{w, len(w.b) - 1, 0}
}

// end writes how many fields there were where the struct began.
func (f *fields) end() {
	f.b[f.at] = cborMap | byte(f.n)
	if f.n >= cborInline {
		f.b[f.at] = cborMap | 24
		f.b = slices.Insert(f.b, f.at+1, byte(f.n))
	}
}

// field begins the field with this number.
func (f *fields) field(number uint64) *writer {
	f.n++
	f.head(cborUint, number)
	return f.writer
}

// The following write a field unless it has its zero value.

func (f *fields) someText(number uint64, s string) {
	if s != "" {
		f.field(number).text(s)
	}
}

func (f *fields) someInt(number uint64, n int64) {
	if n != 0 {
		f.field(number).int(n)
	}
}

func (f *fields) someBool(number uint64, v bool) {
	if v {
		f.field(number).bool(v)
	}
}

func (f *fields) someTime(number uint64, t time.Time) {
	if !t.IsZero() {
		f.field(number).time(t)
	}
}
