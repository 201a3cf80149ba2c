package badgerstore

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"keep-proxy/ledger"
)

// Format 1 stored mutations, events and deliveries as maps with the fields' names,
// and times of a stamp as text; format 2 has numbers for names and stamps in binary.
// What format 1 wrote is rewritten to format 2 as it is read, and stored so with the
// record's next change.

// ofNames reports whether content is a map whose first key is a name, as all were in
// format 1. A struct of format 2 begins with a number.
func ofNames(content []byte) bool {
	const (
		mapping, text = 0xa0, 0x60
		major         = 0xe0
	)
	if len(content) < 2 || content[0]&major != mapping {
		return false
	}
	first := 1
	if count := content[0] &^ major; count >= 24 {
		first += 1 << (count - 24)
	}
	return first < len(content) && content[first]&major == text
}

// field is how a struct's field is stored.
type field struct {
	// key is its number, or its name if it has none.
	key any
	typ reflect.Type
}

// fieldsOf finds the fields of a struct by the names that format 1 gave them.
func fieldsOf(t reflect.Type) map[string]field {
	out := map[string]field{}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		number, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
		stored := field{key: name, typ: f.Type}
		if n, err := strconv.Atoi(number); err == nil {
			stored.key = n
		}
		out[name] = stored
	}
	return out
}

var (
	stampType = reflect.TypeFor[ledger.Stamp]()
	timeType  = reflect.TypeFor[time.Time]()
)

// namedStamp is a stamp as format 1 stored it: with names.
type namedStamp ledger.Stamp

// renumber rewrites a value of type t from format 1.
func renumber(t reflect.Type, content []byte) ([]byte, error) {
	const null = 0xf6
	switch {
	case len(content) == 1 && content[0] == null, t == timeType:
		return content, nil
	case t == stampType:
		var s namedStamp
		if err := decoder.Unmarshal(content, &s); err != nil {
			return nil, err
		}
		return encode(ledger.Stamp(s))
	case t.Kind() == reflect.Pointer:
		return renumber(t.Elem(), content)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return renumberAll(t.Elem(), content)
	case t.Kind() == reflect.Struct:
		return renumberStruct(t, content)
	}
	return content, nil
}

func renumberAll(t reflect.Type, content []byte) ([]byte, error) {
	var all []cbor.RawMessage
	if err := decoder.Unmarshal(content, &all); err != nil {
		return nil, err
	}
	for i := range all {
		var err error
		if all[i], err = renumber(t, all[i]); err != nil {
			return nil, err
		}
	}
	return encode(all)
}

func renumberStruct(t reflect.Type, content []byte) ([]byte, error) {
	var names map[string]cbor.RawMessage
	if err := decoder.Unmarshal(content, &names); err != nil {
		return nil, err
	}
	fields := fieldsOf(t)
	out := make(map[any]cbor.RawMessage, len(names))
	for name, value := range names {
		f, known := fields[name]
		if !known {
			return nil, fmt.Errorf("%s has no field %q", t.Name(), name)
		}
		value, err := renumber(f.typ, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[f.key] = value
	}
	return encode(out)
}

// decodeNumbered reads a struct of format 2, or of format 1.
func decodeNumbered[T any](key, content []byte, v *T) error {
	if !ofNames(content) {
		return decode(key, content, v)
	}
	numbered, err := renumber(reflect.TypeFor[T](), content)
	if err != nil {
		return damaged(key, err.Error())
	}
	return decode(key, numbered, v)
}
