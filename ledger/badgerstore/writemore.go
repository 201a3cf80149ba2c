package badgerstore

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// unwritten is a field of a struct that the writer doesn't know.
type unwritten struct {
	index int
	// key is its number, or its name if it has none.
	key any
	// always says that it is written with its zero value, too.
	always bool
}

// more lists the fields of T but for those with the numbers from 1 to last, and others.
// An embedded struct is asked for by itself.
func more[T any](last int, others ...int) (out []unwritten) {
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("cbor"), ",")
		u := unwritten{index: i, key: f.Name, always: !strings.Contains(options, "omit")}
		n, err := strconv.Atoi(name)
		switch {
		case err == nil && (n >= 1 && n <= last || slices.Contains(others, n)):
			continue
		case err == nil:
			u.key = n
		case name != "":
			u.key = name
		default:
			name, options, _ = strings.Cut(f.Tag.Get("json"), ",")
			u.always = !strings.Contains(options, "omit")
			if name != "" {
				u.key = name
			}
		}
		out = append(out, u)
	}
	return out
}

// more writes the fields of the struct that v points at which the writer doesn't know.
func (f *fields) more(list []unwritten, v any) {
	for _, u := range list {
		value := reflect.ValueOf(v).Elem().Field(u.index)
		if !u.always && isNothing(value) {
			continue
		}
		f.n++
		f.other(u.key)
		f.other(value.Interface())
	}
}

// isNothing reports whether v is left out of what is stored.
func isNothing(v reflect.Value) bool {
	if k := v.Kind(); k == reflect.Map || k == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}
