package admin

import (
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
)

// maxRequest is the longest request body, in bytes, where a route has no other
// limit.
const maxRequest = 1 << 20

// shape is what a route takes as its body.
type shape struct {
	// limit is the longest body in bytes.
	limit int64
	// optional allows no body at all.
	optional bool
	// later are member names that a later version takes; they are refused by name.
	later []string
	// whole are member names that narrow what is asked for. Empty texts are refused
	// there: left out they have a meaning, which is all of it.
	whole []string
}

// readBody reads the whole body of a JSON request.
func readBody(w http.ResponseWriter, r *http.Request, sh shape) ([]byte, error) {
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, sh.limit))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, refuse("too-large", "The body is longer than %d bytes.", tooLong.Limit)
	case err != nil:
		return nil, BadRequest("body", "it did not arrive whole", "send it again")
	case len(content) == 0 && sh.optional:
		return []byte("{}"), nil
	case len(content) == 0:
		return nil, BadRequest("body", "it is empty", "send a JSON object")
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, refuse("media-type", "Send the body with Content-Type: application/json, not %q.", r.Header.Get("Content-Type"))
	}
	return content, nil
}

// decode reads a JSON object into v, a pointer to a struct, strictly: unknown and
// repeated names, other types and trailing text are refused. All unknown names
// at the top are reported together.
func decode(content []byte, v any, sh shape) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(content, &members); err != nil {
		return jsonFault(err)
	}
	if members == nil {
		return BadRequest("body", "it is null", "send a JSON object")
	}
	if faults := unknownMembers(members, memberNames(reflect.TypeOf(v).Elem()), sh); len(faults) > 0 {
		return badRequest(faults)
	}
	if err := json.Unmarshal(content, v, json.RejectUnknownMembers(true)); err != nil {
		return jsonFault(err)
	}
	return nil
}

// unknownMembers lists what a body holds but shouldn't, and what it holds emptied, in order of name.
func unknownMembers(members map[string]jsontext.Value, known []string, sh shape) []wire.Fault {
	var faults []wire.Fault
	for _, name := range slices.Sorted(maps.Keys(members)) {
		where := string(jsontext.Pointer("").AppendToken(name))
		switch {
		case slices.Contains(sh.whole, name) && string(members[name]) == `""`:
			faults = append(faults, wire.Fault{Where: where, What: "empty", How: "give a value, or leave it out"})
		case slices.Contains(known, name):
		case slices.Contains(sh.later, name):
			faults = append(faults, wire.Fault{Where: where, What: "not yet: this version doesn't build it", How: "leave it out"})
		default:
			faults = append(faults, wire.Fault{Where: where, What: "unknown name", How: suggest(name, known)})
		}
	}
	return faults
}

// memberNames lists the JSON names of a struct's fields, embedded ones included.
func memberNames(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// jsonFault says where a body is no JSON, or not the JSON that is wanted.
func jsonFault(err error) error {
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		what := strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")
		if errors.Is(err, io.ErrUnexpectedEOF) {
			what = "it ends in the middle of a value"
		}
		where := pointer(syntactic.JSONPointer)
		return BadRequest(where, fmt.Sprintf("no valid JSON at byte %d: %s", syntactic.ByteOffset, what), "")
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return BadRequest("body", "it can't be read as JSON", "")
	}
	where := pointer(semantic.JSONPointer)
	if errors.Is(semantic.Err, json.ErrUnknownName) {
		return BadRequest(where, "unknown name", "leave it out")
	}
	what := fmt.Sprintf("a JSON %s doesn't fit here", kindName(semantic.JSONKind))
	if semantic.Err != nil {
		what = strings.TrimPrefix(semantic.Err.Error(), "json: ")
	}
	return BadRequest(where, what, wanted(semantic.GoType))
}

// pointer names the whole body where there is no place in it.
func pointer(p jsontext.Pointer) string {
	if p == "" {
		return "body"
	}
	return string(p)
}

// kindName is how people call a kind of JSON value.
func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "boolean"
	case jsontext.KindString:
		return "string"
	case jsontext.KindNumber:
		return "number"
	case jsontext.KindBeginArray, jsontext.KindEndArray:
		return "list"
	case jsontext.KindBeginObject, jsontext.KindEndObject:
		return "object"
	case jsontext.KindInvalid:
		return "value"
	}
	return "value"
}

// wanted says what a place takes.
func wanted(t reflect.Type) string {
	switch {
	case t == nil:
		return ""
	case t == reflect.TypeFor[wire.Duration]():
		return `give a string such as "90s" or "1h30m"`
	}
	switch t.Kind() {
	case reflect.String:
		return "give a string"
	case reflect.Bool:
		return "give true or false"
	case reflect.Int, reflect.Int64:
		return "give a whole number"
	case reflect.Struct, reflect.Map:
		return "give an object"
	case reflect.Slice:
		return "give a list"
	default:
		return ""
	}
}
