package admin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/strictyaml"
)

// maxRequest is the longest request body, in bytes. One that holds an answer may be longer by the
// answer in base64.
const maxRequest = 1 << 20

// read reads the whole body of a JSON request into v, a pointer to a struct.
func (rt route) read(w http.ResponseWriter, r *http.Request, maxAnswer int64, v any) error {
	limit := int64(maxRequest)
	if rt.long {
		limit += maxAnswer / 3 * 4
	}
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return refuse("too-large", "The body is longer than %d bytes.", tooLong.Limit)
	case err != nil:
		return BadRequest("body", "it did not arrive whole", "send it again")
	case len(content) == 0 && rt.optional:
		return nil
	case len(content) == 0:
		return BadRequest("body", "it is empty", "send a JSON object")
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return refuse("media-type", "Send the body with Content-Type: application/json, not %q.", r.Header.Get("Content-Type"))
	}
	return decode(content, v, rt.whole...)
}

// decode reads a JSON object into v, a pointer to a struct. It refuses unknown and repeated names,
// other types, trailing text, and empty texts of the members whole. All unknown names at the top are
// reported together.
func decode(content []byte, v any, whole ...string) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(content, &members); err != nil {
		return jsonFault(err)
	}
	if members == nil {
		return BadRequest("body", "it is null", "send a JSON object")
	}
	var known []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			known = append(known, name)
		}
	}
	var faults faults
	for _, name := range slices.Sorted(maps.Keys(members)) {
		where := string(jsontext.Pointer("").AppendToken(name))
		switch {
		case !slices.Contains(known, name):
			faults.add(where, "unknown name", suggest(name, known))
		case slices.Contains(whole, name) && string(members[name]) == `""`:
			faults.add(where, "empty", "give a value, or leave it out")
		}
	}
	if err := faults.err(); err != nil {
		return err
	}
	if err := json.Unmarshal(content, v, json.RejectUnknownMembers(true)); err != nil {
		return jsonFault(err)
	}
	return nil
}

// suggest says which name was probably meant, or which there are.
func suggest(name string, known []string) string {
	if near := strictyaml.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known are " + cmp.Or(strings.Join(slices.Sorted(slices.Values(known)), ", "), "none")
}

// jsonFault says where a body is no JSON, or not the JSON that is wanted.
func jsonFault(err error) error {
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		what := strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")
		if errors.Is(err, io.ErrUnexpectedEOF) {
			what = "it ends in the middle of a value"
		}
		return BadRequest(placeOf(syntactic.JSONPointer), fmt.Sprintf("no valid JSON at byte %d: %s", syntactic.ByteOffset, what), "")
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return BadRequest("body", "it can't be read as JSON", "")
	}
	where := placeOf(semantic.JSONPointer)
	if errors.Is(semantic.Err, json.ErrUnknownName) {
		return BadRequest(where, "unknown name", "leave it out")
	}
	what := fmt.Sprintf("a JSON %s doesn't fit here", cmp.Or(kindNames[semantic.JSONKind], "value"))
	if semantic.Err != nil {
		what = strings.TrimPrefix(semantic.Err.Error(), "json: ")
	}
	return BadRequest(where, what, wanted(semantic.GoType))
}

// placeOf names the whole body where there is no place in it.
func placeOf(p jsontext.Pointer) string { return cmp.Or(string(p), "body") }

// kindNames is how people call the kinds of JSON values.
var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindTrue: "boolean", jsontext.KindFalse: "boolean", jsontext.KindString: "string",
	jsontext.KindNumber: "number", jsontext.KindBeginArray: "list", jsontext.KindBeginObject: "object",
}

// wantedKinds says what a place takes, by its Go kind.
var wantedKinds = map[reflect.Kind]string{
	reflect.String: "give a string", reflect.Bool: "give true or false", reflect.Int: "give a whole number",
	reflect.Int64: "give a whole number", reflect.Struct: "give an object", reflect.Map: "give an object", reflect.Slice: "give a list",
}

// wanted says what a place takes.
func wanted(t reflect.Type) string {
	switch t {
	case nil:
		return ""
	case reflect.TypeFor[wire.Duration]():
		return `give a string such as "90s" or "1h30m"`
	}
	return wantedKinds[t.Kind()]
}
