package admin

import (
	"cmp"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// as makes a T of a struct. Each field of T takes the struct's field of its name, or of the one
// that its tag "ledger" has. It stays empty where there is none, or where the tag is "-". So the
// API shows of a record what its own type names, and no more.
func as[T, F any](from F) (to T) {
	take(reflect.ValueOf(&to).Elem(), reflect.Indirect(reflect.ValueOf(from)))
	return to
}

// take sets to by what from holds. Nothing is shared between them but maps.
func take(to, from reflect.Value) {
	switch v := from.Interface().(type) {
	case ledger.Stamp:
		from = reflect.ValueOf(v.Wall)
	case ledger.Key:
		from = reflect.ValueOf(v.ID())
	case ledger.Body:
		from = reflect.ValueOf(bodyReference(v))
	case map[string]string:
		if to.Type() == reflect.TypeFor[map[string]jsontext.Value]() {
			from = reflect.ValueOf(identityOf(v))
		}
	}
	switch {
	case from.Kind() == reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
			take(to.Elem(), from.Elem())
		}
	case from.Kind() == reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		}
		for i := range from.Len() {
			take(to.Index(i), from.Index(i))
		}
	case from.Kind() == to.Kind() && from.CanConvert(to.Type()):
		to.Set(from.Convert(to.Type()))
	default:
		for _, f := range sharedFields(to.Type(), from.Type()) {
			field := to.FieldByIndex(f.to)
			take(field, from.FieldByIndex(f.from))
			if f.list && field.IsNil() {
				field.Set(reflect.MakeSlice(field.Type(), 0, 0))
			}
		}
	}
}

// sharedField is where two structs have the same field.
type sharedField struct {
	to, from []int
	// list says that it is a list which is always there in JSON.
	list bool
}

// shared keeps what sharedFields finds.
var shared sync.Map

func sharedFields(to, from reflect.Type) []sharedField {
	types := [2]reflect.Type{to, from}
	if known, ok := shared.Load(types); ok {
		fields, _ := known.([]sharedField)
		return fields
	}
	var fields []sharedField
	for _, f := range reflect.VisibleFields(to) {
		name := cmp.Or(f.Tag.Get("ledger"), f.Name)
		if source, ok := from.FieldByName(name); ok && !f.Anonymous {
			list := f.Type.Kind() == reflect.Slice && !strings.Contains(f.Tag.Get("json"), ",")
			fields = append(fields, sharedField{f.Index, source.Index, list})
		}
	}
	shared.Store(types, fields)
	return fields
}

// mutationOf shows a record without its events, its open actions, and the
// content of its bodies.
func mutationOf(m *ledger.Mutation) wire.Mutation {
	out := as[wire.Mutation](m)
	out.Key = m.Key.String()
	return out
}

// outlineOf shows what became of a record, and not what was sent or answered. It has no query, and no header fields:
// one may open a session. It has no values in which payloads differ, and not what the API was asked.
func outlineOf(m *ledger.Mutation) wire.Mutation {
	out := mutationOf(m)
	out.Request.Headers = wire.Header{}
	out.Request.URL, _, _ = strings.Cut(out.Request.URL, "?")
	if out.Result != nil {
		out.Result.Headers, out.Result.Trailers = wire.Header{}, nil
	}
	if out.Diff != nil {
		for i := range out.Diff.Changes {
			out.Diff.Changes[i].Stored, out.Diff.Changes[i].Asked = "", ""
		}
	}
	if out.Verification != nil {
		out.Verification.Evidence = ""
	}
	for i := range out.Observations {
		out.Observations[i].Evidence = ""
	}
	return out
}

// each converts a list; the result is never nil.
func each[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, a := range list {
		out = append(out, convert(a))
	}
	return out
}

// identityOf shows canonical JSON as it is, and anything else as a string. A record must be shown
// whatever it holds.
func identityOf(identity map[string]string) map[string]jsontext.Value {
	out := make(map[string]jsontext.Value, len(identity))
	for name, text := range identity {
		value := jsontext.Value(text)
		if !value.IsValid() {
			value, _ = jsontext.AppendQuote(nil, text)
		}
		out[name] = value
	}
	return out
}

// bodyReference names stored content without showing it. An empty body is shown.
func bodyReference(b ledger.Body) wire.Body {
	switch {
	case b.Dropped:
		return wire.Body{Missing: wire.MissingDropped, SHA256: b.SHA256, Size: b.Size}
	case b.Size == 0:
		return wire.Body{}
	}
	return wire.Body{Missing: wire.MissingOmitted, SHA256: b.SHA256, Size: b.Size}
}

// runOf shows a run.
func runOf(r *ledger.Run) wire.Run {
	out := as[wire.Run](r)
	out.Labels, out.Retry = shownLabels(r.Labels), retryOf(r)
	missing := r.Missing()
	out.Refused = as[[]wire.Refused](missing[:min(len(missing), ledger.ShownRefused)])
	return out
}
