package wire

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Duration is a time.Duration that reads and writes as Go prints it ("1h30m0s").
type Duration time.Duration

// String prints d as [time.Duration] does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes d as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [time.ParseDuration] reads.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is no duration; write it like 90s or 1h30m", b)
	}
	*d = Duration(parsed)
	return nil
}

// Header maps a field name to its values. In JSON a value is a string, or a
// list of strings where a name repeats; both are read.
type Header map[string][]string

// MarshalJSON writes single values as strings and repeated ones as lists.
func (h Header) MarshalJSON() ([]byte, error) {
	fields := make(map[string]any, len(h))
	for name, values := range h {
		if len(values) == 1 {
			fields[name] = values[0]
		} else {
			fields[name] = values
		}
	}
	return json.Marshal(fields, json.Deterministic(true))
}

// UnmarshalJSON reads an object whose members are strings or lists of strings.
func (h *Header) UnmarshalJSON(b []byte) error {
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(b, &fields); err != nil {
		return errors.New("headers are an object of strings or lists of strings")
	}
	*h = nil
	if fields == nil {
		return nil
	}
	*h = make(Header, len(fields))
	for name, raw := range fields {
		values, err := headerValues(raw)
		if err != nil {
			return err
		}
		(*h)[name] = values
	}
	return nil
}

// headerValues reads one value, or a list of them.
func headerValues(raw jsontext.Value) (values []string, err error) {
	switch raw.Kind() { //nolint:exhaustive // Nothing else is a header's value.
	case '"':
		values = make([]string, 1)
		err = json.Unmarshal(raw, &values[0])
		return values, err
	case '[':
		var list []*string
		if json.Unmarshal(raw, &list) != nil || slices.Contains(list, nil) {
			return nil, errors.New("a header's list holds strings")
		}
		err = json.Unmarshal(raw, &values)
		return values, err
	}
	return nil, errors.New("a header's value is a string or a list of strings")
}

// Missing says why a body's content isn't shown.
type Missing string

const (
	// MissingDropped: retention removed the content.
	MissingDropped Missing = "dropped"
	// MissingOmitted: listings leave content out. So does a record whose body is too long to show, or
	// can't be read now. The body can be fetched by itself.
	MissingOmitted Missing = "omitted"
	// MissingDamaged: what is stored isn't whole any more, or not there.
	MissingDamaged Missing = "damaged"
)

// Body is the content of a request or an answer. In JSON it is a string if it is valid UTF-8, and
// {"base64": …} if not. Where the content isn't shown it is {"missing", "sha256", "size"}.
type Body struct {
	Content []byte
	// Missing is empty where Content is the whole content.
	Missing Missing
	// SHA256 is the hex digest, given with Missing only.
	SHA256 string
	// Size is in bytes, given with Missing only.
	Size int64
}

// Text returns a body with this content.
func Text(s string) Body { return Body{Content: []byte(s)} }

// reference and encoded are the two object forms of a Body.
type (
	reference struct {
		Missing Missing `json:"missing"`
		SHA256  string  `json:"sha256"`
		Size    int64   `json:"size"`
	}
	encoded struct {
		Base64 []byte `json:"base64"`
	}
)

// MarshalJSON writes one of the three forms.
func (b Body) MarshalJSON() ([]byte, error) {
	switch {
	case b.Missing != "":
		return json.Marshal(reference{b.Missing, b.SHA256, b.Size})
	case utf8.Valid(b.Content):
		return json.Marshal(string(b.Content))
	default:
		return json.Marshal(encoded{b.Content})
	}
}

// UnmarshalJSON reads any of the three forms, and null as no content.
func (b *Body) UnmarshalJSON(raw []byte) error {
	var text *string
	if json.Unmarshal(raw, &text) == nil {
		*b = Body{}
		if text != nil {
			b.Content = []byte(*text)
		}
		return nil
	}
	var enc encoded
	if json.Unmarshal(raw, &enc, json.RejectUnknownMembers(true)) == nil && enc.Base64 != nil {
		*b = Body{Content: enc.Base64}
		return nil
	}
	var ref reference
	if json.Unmarshal(raw, &ref, json.RejectUnknownMembers(true)) == nil && ref.Missing != "" {
		*b = Body{Missing: ref.Missing, SHA256: ref.SHA256, Size: ref.Size}
		return nil
	}
	return errors.New(`a body is a string or {"base64": "…"}`)
}

// List is one page of a listing, newest first.
type List[T any] struct {
	// Items is never null.
	Items []T `json:"items"`
	// Next continues the listing as the cursor parameter; it is absent at the end.
	Next string `json:"next,omitzero"`
}
