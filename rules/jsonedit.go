package rules

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// errNoObject is a path that leads through something other than an object.
var errNoObject = errors.New("the JSON body has no object at that place")

// errNoText is a place to append to that holds no text.
var errNoText = errors.New("there is something other than text at that place")

// editJSON sets the value at a path of names and leaves every other byte as it
// is: the order of members, the digits of numbers, the white space. edit gets the
// value that is there, nil for none, and returns the new one. Objects that are
// missing on the way are made.
func editJSON(body []byte, steps []placeStep, edit func(old jsontext.Value) (jsontext.Value, error)) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body))
	for i, step := range steps {
		if dec.PeekKind() != jsontext.KindBeginObject {
			return nil, errNoObject
		}
		if _, err := dec.ReadToken(); err != nil {
			return nil, fmt.Errorf("JSON body: %w", err)
		}
		found, members, err := seekMember(dec, step.name)
		if err != nil {
			return nil, fmt.Errorf("JSON body: %w", err)
		}
		if !found {
			return insertJSON(body, dec.InputOffset()-1, members, steps[i:], edit)
		}
	}
	old, err := dec.ReadValue()
	if err != nil {
		return nil, fmt.Errorf("JSON body: %w", err)
	}
	end := int(dec.InputOffset())
	start := end - len(old)
	value, err := edit(slices.Clone(old))
	if err != nil {
		return nil, err
	}
	return slices.Concat(body[:start], value, body[end:]), nil
}

// seekMember reads members up to the value of name, or past the end of the
// object.
func seekMember(dec *jsontext.Decoder, name string) (found bool, members int, err error) {
	for dec.PeekKind() != jsontext.KindEndObject {
		tok, err := dec.ReadToken()
		if err != nil {
			return false, members, err
		}
		if tok.String() == name {
			return true, members, nil
		}
		if err := dec.SkipValue(); err != nil {
			return false, members, err
		}
		members++
	}
	_, err = dec.ReadToken()
	return false, members, err
}

// insertJSON puts a new member before the closing brace at offset at.
func insertJSON(body []byte, at int64, members int, steps []placeStep, edit func(jsontext.Value) (jsontext.Value, error)) ([]byte, error) {
	value, err := edit(nil)
	if err != nil {
		return nil, err
	}
	for i := len(steps) - 1; i > 0; i-- {
		value = slices.Concat([]byte("{"), appendString(nil, steps[i].name), []byte(":"), value, []byte("}"))
	}
	member := slices.Concat(appendString(nil, steps[0].name), []byte(":"), value)
	if members > 0 {
		member = slices.Concat([]byte(","), member)
	}
	return slices.Concat(body[:at], member, body[at:]), nil
}
