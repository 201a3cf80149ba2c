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

// celOrEmpty is the CEL value of v; an empty map where there is none, so that an
// optional member is absent and any other an error.
func celOrEmpty(v *jsonValue) any {
	if v == nil {
		return map[string]any{}
	}
	return toCEL(v)
}

// toCEL converts a JSON value to what CEL's type adapter takes.
func toCEL(v *jsonValue) any {
	switch v.kind {
	case jsonNull:
		return types.NullValue
	case jsonFalse:
		return false
	case jsonTrue:
		return true
	case jsonNumber:
		return numberToCEL(v.text)
	case jsonString:
		return v.text
	case jsonArray:
		out := make([]any, len(v.items))
		for i := range v.items {
			out[i] = toCEL(&v.items[i])
		}
		return out
	case jsonObject:
		out := make(map[string]any, len(v.items))
		for i := range v.items {
			out[v.names[i]] = toCEL(&v.items[i])
		}
		return out
	}
	return types.NullValue
}

// numberToCEL makes an int, a uint or a double; a number that none of them holds
// exactly stays a number with all its digits.
func numberToCEL(literal string) any {
	spelling, exact := canonicalNumber(literal)
	if !exact {
		return digits(literal)
	}
	if !isInteger(literal) {
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

// digits is a number beyond CEL's own, which can be compared for equality,
// converted by string() and written out with all its digits.
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
	if opt, ok := v.(*types.Optional); ok {
		if !opt.HasValue() {
			return jsonValue{}, false, nil
		}
		return fromCEL(opt.GetValue())
	}
	out, err = jsonOf(v)
	return out, err == nil, err
}

// jsonOf converts a value that is there.
func jsonOf(v ref.Val) (jsonValue, error) {
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
	case traits.Mapper:
		return jsonOfMap(v)
	case traits.Lister:
		return jsonOfList(v)
	}
	return jsonValue{}, fmt.Errorf("a result of type %s can't be used here", v.Type().TypeName())
}

// jsonOfList converts a list; absent optionals inside are left out.
func jsonOfList(l traits.Lister) (jsonValue, error) {
	out := jsonValue{kind: jsonArray}
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, present, err := fromCEL(it.Next())
		if err != nil {
			return jsonValue{}, err
		}
		if present {
			out.items = append(out.items, item)
		}
	}
	return out, nil
}

// jsonOfMap converts a map with string keys, in the order of the keys.
func jsonOfMap(m traits.Mapper) (jsonValue, error) {
	values := map[string]jsonValue{}
	var names []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return jsonValue{}, errors.New("a map in a result has a key that is no string")
		}
		item, present, err := fromCEL(m.Get(key))
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
		out.items = append(out.items, values[name])
	}
	return out, nil
}
