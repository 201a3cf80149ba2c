package wire

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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
