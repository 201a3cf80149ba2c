package rules

import (
	"crypto/sha1" //nolint:gosec // git names blobs by SHA-1; nothing is authenticated with it
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	celconfig "cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
)

// Bounds of one evaluation: CEL's own cost units and retained elements. They keep
// the worst expression on the worst input well below a second.
const (
	costLimit   = 500_000
	memoryLimit = 16_000_000
)

// position is where an expression stands; it decides which variables there are.
type position uint8

const (
	// inRequest may read the request alone.
	inRequest position = iota
	// inRecord may read the request, its account and its record. In a step of a probe it may also read the answers to
	// the steps before.
	inRecord
	// inAnswer may read an answer too.
	inAnswer
	// inFound may read one object of a listing too.
	inFound
	// inCompare may read the request, and the stored one.
	inCompare
	// inUndo may read what inRecord may, and the id of the object that is taken back;
	// inUndone an answer too.
	inUndo
	inUndone
)

// celEnvs makes the environment of each position once: making one costs a
// millisecond, and they are immutable.
var celEnvs = sync.OnceValues(makeEnvs)

// makeEnvs builds the environments, each with the variables of the one before.
func makeEnvs() (map[position]*cel.Env, error) {
	strs := cel.MapType(cel.StringType, cel.StringType)
	anys := cel.MapType(cel.StringType, cel.DynType)
	lists := cel.MapType(cel.StringType, cel.ListType(cel.StringType))
	layers := [][]cel.EnvOption{
		append([]cel.EnvOption{
			cel.OptionalTypes(), ext.Strings(), ext.Lists(), ext.Encoders(),
			cel.DefaultUTCTimeZone(true),
			cel.Variable("method", cel.StringType), cel.Variable("authority", cel.StringType), cel.Variable("body_sha256", cel.StringType),
			cel.Variable("host", strs), cel.Variable("path", strs),
			cel.Variable("query", strs), cel.Variable("form", strs), cel.Variable("header", strs),
			cel.Variable("query_all", lists), cel.Variable("form_all", lists),
			cel.Variable("json", cel.DynType), cel.Variable("graphql", cel.DynType), cel.Variable("multipart", cel.DynType),
			cel.Variable("jsonrpc", cel.DynType), cel.Variable("mail", cel.DynType), cel.Variable("aws", cel.DynType),
			cel.Variable("body_md5", cel.StringType),
		}, celFunctions(anys)...),
		{cel.Variable("account", cel.StringType), cel.Variable("mutation", anys), cel.Variable("steps", anys)},
		{cel.Variable("response", anys)},
		{cel.Variable("found", cel.DynType)},
	}
	envs := map[position]*cel.Env{}
	// string() of a double is our own.
	without := celconfig.NewLibrarySubset().AddExcludedFunctions(
		celconfig.NewFunction("string", celconfig.NewOverload(overloads.DoubleToString, nil, nil)))
	env, err := cel.NewCustomEnv(cel.StdLib(cel.StdLibSubset(without)), cel.Container(""))
	for i, layer := range layers {
		if err == nil {
			env, err = env.Extend(layer...)
		}
		envs[position(i)] = env
	}
	if err == nil {
		envs[inCompare], err = envs[inRequest].Extend(storedLayer())
	}
	if err == nil {
		envs[inUndo], err = envs[inRecord].Extend(cel.Variable("object", cel.StringType))
	}
	if err == nil {
		envs[inUndone], err = envs[inAnswer].Extend(cel.Variable("object", cel.StringType))
	}
	if err != nil {
		return nil, fmt.Errorf("expression environment: %w", err)
	}
	return envs, nil
}

// celFunctions are the helpers of connector-format §2.
func celFunctions(response *cel.Type) []cel.EnvOption {
	return []cel.EnvOption{
		unary("rfc2822", cel.TimestampType, cel.StringType, rfc2822),
		unary("addresses", cel.ListType(cel.StringType), cel.DynType, addresses),
		unary("last", cel.DynType, cel.DynType, lastOf),
		unary("sha256", cel.StringType, cel.DynType, func(v ref.Val) ref.Val {
			return withBytes(v, func(b []byte) string {
				sum := sha256.Sum256(b)
				return hex.EncodeToString(sum[:])
			})
		}),
		unary("base64url", cel.StringType, cel.DynType, func(v ref.Val) ref.Val {
			return withBytes(v, base64.RawURLEncoding.EncodeToString)
		}),
		unary("git_blob_sha", cel.StringType, cel.DynType, func(v ref.Val) ref.Val {
			return withBytes(v, func(b []byte) string {
				h := sha1.New()                              //nolint:gosec // see the import
				_, _ = fmt.Fprintf(h, "blob %d\x00", len(b)) // a hash never fails
				_, _ = h.Write(b)
				return hex.EncodeToString(h.Sum(nil))
			})
		}),
		// string() of a number beyond CEL's own, and of one that has a fraction or an exponent.
		cel.Function("string",
			cel.Overload("keep_digits_to_string", []*cel.Type{digitsType}, cel.StringType,
				cel.UnaryBinding(func(v ref.Val) ref.Val { return v.ConvertToType(types.StringType) })),
			cel.Overload(overloads.DoubleToString, []*cel.Type{cel.DoubleType}, cel.StringType, cel.UnaryBinding(doubleText))),
		cel.Function("header_of", cel.Overload("header_of_response_string",
			[]*cel.Type{response, cel.StringType}, cel.StringType, cel.BinaryBinding(headerOf))),
	}
}

// unary declares a function of one argument.
func unary(name string, out, in *cel.Type, f func(ref.Val) ref.Val) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_value", []*cel.Type{in}, out, cel.UnaryBinding(f)))
}

// doubleText writes a whole number as it writes an integer, since 4484626 and 4484626.0 are one:
// CEL's own gives 4.484626e+06 for the second.
func doubleText(v ref.Val) ref.Val {
	d, ok := v.(types.Double)
	switch f := float64(d); {
	case !ok || f != math.Trunc(f) || math.Abs(f) >= exponentFrom:
		return v.ConvertToType(types.StringType)
	case f == 0:
		return types.String("0")
	default:
		return types.String(strconv.FormatFloat(f, 'f', -1, 64))
	}
}

// exponentFrom is from where on canonical JSON writes a double with an exponent (RFC 8785 §3.2.2.3).
const exponentFrom = 1e21

// withBytes applies f to a string's UTF-8 or to bytes.
func withBytes(v ref.Val, f func([]byte) string) ref.Val {
	switch v := v.(type) {
	case types.String:
		return types.String(f([]byte(v)))
	case types.Bytes:
		return types.String(f(v))
	}
	return types.MaybeNoSuchOverloadErr(v)
}

// lastOf is the last element of a list; an empty list has none.
func lastOf(v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	n, ok := list.Size().(types.Int)
	if !ok || n == 0 {
		return types.NewErr("last() of an empty list")
	}
	return list.Get(n - 1)
}

// addresses is the sorted set of the lower-case addr-specs (RFC 5322 §3.4.1) of a
// string or a list of strings.
func addresses(v ref.Val) ref.Val {
	parsed, err := jsonOf(v)
	if err != nil {
		return types.WrapErr(err)
	}
	texts := []jsonValue{parsed}
	if parsed.kind == jsonArray {
		texts = parsed.items
	}
	var out []string
	for _, text := range texts {
		list, err := mail.ParseAddressList(text.text)
		if text.kind != jsonString || err != nil {
			return types.NewErr("addresses() of what is no list of mail addresses")
		}
		for _, a := range list {
			out = append(out, strings.ToLower(a.Address))
		}
	}
	slices.Sort(out)
	return types.NewStringList(types.DefaultTypeAdapter, slices.Compact(out))
}

// headerOf is a field of an answer, "" when it is missing. Names are matched
// without case.
func headerOf(response, name ref.Val) ref.Val {
	m, ok := response.(traits.Mapper)
	key, isString := name.(types.String)
	if !ok || !isString {
		return types.MaybeNoSuchOverloadErr(response)
	}
	header, ok := m.Get(types.String("header")).(traits.Mapper)
	if !ok {
		return types.NewErr("header_of() of what is no answer")
	}
	if v, found := header.Find(types.String(strings.ToLower(string(key)))); found {
		return v
	}
	return types.String("")
}
