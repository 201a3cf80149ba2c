package rules

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json/jsontext"
)

// celOrEmpty is the CEL value of v, or an empty map for none. In that map an optional member is absent, and any other
// is an error.
func celOrEmpty(v *jsonValue, as types.Adapter) any {
	if v == nil {
		return &sizedMap{types.NewStringInterfaceMap(as, map[string]any{}), sized{1, &jsonValue{kind: jsonObject}}}
	}
	return toCEL(v, as)
}

// toCEL converts a JSON value to what CEL's type adapter takes, which is as.
func toCEL(v *jsonValue, as types.Adapter) any {
	out, _ := sizedCEL(v, as)
	return out
}

// sizedCEL is toCEL with the size of what it makes, in the units of memoryLimit.
func sizedCEL(v *jsonValue, as types.Adapter) (out any, size uint32) {
	if v.odd == oddItself {
		return refusedOdd, 1
	}
	switch v.kind {
	case jsonNull:
		return types.NullValue, 1
	case jsonFalse:
		return false, 1
	case jsonTrue:
		return true, 1
	case jsonNumber:
		return numberToCEL(v.text), textSize(v.text)
	case jsonString:
		return v.text, textSize(v.text)
	case jsonArray:
		list := make([]any, len(v.items))
		size = 1
		for i := range v.items {
			var n uint32
			list[i], n = sizedCEL(&v.items[i], as)
			size += n
		}
		return &sizedList{types.NewDynamicList(as, list), sized{size, v}}, size
	case jsonObject:
		members := make(map[string]any, len(v.items))
		size = 1
		for i := range v.items {
			var n uint32
			members[v.names[i]], n = sizedCEL(&v.items[i], as)
			size += n + textSize(v.names[i])
		}
		return &sizedMap{types.NewStringInterfaceMap(as, members), sized{size, v}}, size
	}
	return types.NullValue, 1
}

// sized knows how much a map or list holds. CEL would count it at every step at which it meets one. It stops counting,
// and fails the expression, at 10,000 values or the fifth level. Large objects of an API, or pages of them, have more.
type sized struct {
	size uint32
	// of is the same as JSON.
	of *jsonValue
}

// AggregateSize implements types.AggregateSizeVisitor.
func (s sized) AggregateSize(types.AggregateSizer) uint32 { return s.size }

type sizedMap struct {
	traits.Mapper
	sized
}

type sizedList struct {
	traits.Lister
	sized
}

// textSize is the size of a text, of which CEL counts ten bytes as one value.
func textSize(s string) uint32 { return uint32(len(s)/10) + 1 }

// numberToCEL makes an int, a uint or a double. A number that none of them holds exactly keeps all its digits.
func numberToCEL(literal string) any {
	spelling, exact := canonicalNumber(literal)
	if !exact {
		return digits(literal)
	}
	if !isInteger(literal) || !isInteger(spelling) {
		f, _ := strconv.ParseFloat(spelling, 64)
		return f
	}
	if n, err := strconv.ParseInt(spelling, 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(spelling, 10, 64); err == nil {
		return n
	}
	return digits(spelling)
}

// digits is a number beyond CEL's own. It can be compared for equality, converted by string() and written out with all
// its digits.
type digits string

// digitsType is the CEL type of digits.
var digitsType = types.NewOpaqueType("keep.digits")

// ConvertToNative implements ref.Val.
func (d digits) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.String {
		return string(d), nil
	}
	return nil, fmt.Errorf("the number %s has too many digits for %v", string(d), t)
}

// ConvertToType implements ref.Val.
func (d digits) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(d)
	case types.TypeType:
		return digitsType
	}
	return types.NewErr("a number has too many digits to be converted to %s", t.TypeName())
}

// Equal implements ref.Val.
func (d digits) Equal(other ref.Val) ref.Val {
	o, ok := other.(digits)
	return types.Bool(ok && decimalOf(string(d)) == decimalOf(string(o)))
}

// Type implements ref.Val.
func (d digits) Type() ref.Type { return digitsType }

// Value implements ref.Val.
func (d digits) Value() any { return string(d) }

// fromCEL converts the result of an expression. present is false for an absent
// optional.
func fromCEL(v ref.Val) (out jsonValue, present bool, err error) {
	left := maxJSONValues
	return fromCELWithin(v, &left)
}

// fromCELWithin is fromCEL of one of several values, of which so many are left.
func fromCELWithin(v ref.Val, left *int) (out jsonValue, present bool, err error) {
	if opt, ok := v.(*types.Optional); ok {
		if !opt.HasValue() {
			return jsonValue{}, false, nil
		}
		return fromCELWithin(opt.GetValue(), left)
	}
	out, err = jsonWithin(v, left)
	return out, err == nil, err
}

// jsonOf converts a value that is there.
func jsonOf(v ref.Val) (jsonValue, error) {
	left := maxJSONValues
	return jsonWithin(v, &left)
}

// jsonWithin is jsonOf of one of several values. A list may hold one value many times, and each
// time it is converted.
func jsonWithin(v ref.Val, left *int) (jsonValue, error) {
	if *left--; *left < 0 {
		return jsonValue{}, errTooMany
	}
	switch v := v.(type) {
	case types.Null:
		return jsonValue{}, nil
	case types.Bool:
		return boolValue(bool(v)), nil
	case types.String:
		return stringValue(string(v)), nil
	case types.Int:
		return jsonValue{kind: jsonNumber, text: strconv.FormatInt(int64(v), 10)}, nil
	case types.Uint:
		return jsonValue{kind: jsonNumber, text: strconv.FormatUint(uint64(v), 10)}, nil
	case digits:
		return jsonValue{kind: jsonNumber, text: string(v)}, nil
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return jsonValue{}, errors.New("the result is no finite number")
		}
		return jsonValue{kind: jsonNumber, text: string(jsontext.AppendFloat(nil, float64(v), 64))}, nil
	case types.Bytes:
		return stringValue(base64.StdEncoding.EncodeToString(v)), nil
	case types.Timestamp:
		return stringValue(v.Time.UTC().Format(time.RFC3339Nano)), nil
	case *types.Err:
		return jsonValue{}, v
	case *sizedMap:
		*left -= v.of.count()
		return *v.of, nil
	case *sizedList:
		*left -= v.of.count()
		return *v.of, nil
	case traits.Mapper:
		return jsonOfMap(v, left)
	case traits.Lister:
		return jsonOfList(v, left)
	}
	return jsonValue{}, fmt.Errorf("a result of type %s can't be used here", v.Type().TypeName())
}

// jsonOfList converts a list; absent optionals inside are left out.
func jsonOfList(l traits.Lister, left *int) (jsonValue, error) {
	out := jsonValue{kind: jsonArray}
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, present, err := fromCELWithin(it.Next(), left)
		if err != nil {
			return jsonValue{}, err
		}
		if present {
			out.items, out.odd = append(out.items, item), max(out.odd, item.odd)
		}
	}
	return out, nil
}

// jsonOfMap converts a map with string keys, in the order of the keys.
func jsonOfMap(m traits.Mapper, left *int) (jsonValue, error) {
	values := map[string]jsonValue{}
	var names []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return jsonValue{}, errors.New("a map in a result has a key that is no string")
		}
		item, present, err := fromCELWithin(m.Get(key), left)
		if err != nil {
			return jsonValue{}, err
		}
		if present {
			names = append(names, string(name))
			values[string(name)] = item
		}
	}
	slices.Sort(names)
	out := jsonValue{kind: jsonObject, names: names}
	for _, name := range names {
		out.items, out.odd = append(out.items, values[name]), max(out.odd, values[name].odd)
	}
	return out, nil
}
