package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin/wire"
)

// given is the answer that a person gives, as its file has it: what the API shows of a result
// can be given back, and its content can be written as the JSON that it is.
type given struct {
	Status  int            `json:"status"`
	Headers wire.Header    `json:"headers,omitzero"`
	Body    jsontext.Value `json:"body,omitzero"`
	// Source and Trailers are for the API to refuse.
	Source   string      `json:"source,omitzero"`
	Trailers wire.Header `json:"trailers,omitzero"`
}

// readResult reads the answer that a script shall get.
func readResult(stdin io.Reader, name string) (*wire.Result, error) {
	content, err := readNamed(stdin, name)
	if err != nil {
		return nil, fmt.Errorf("--result: %w", err)
	}
	result, err := resultOf(content)
	if err != nil {
		return nil, fmt.Errorf(`--result: %s: %w; write {"status": 201, "headers": {…}, "body": …}, where body is a text or JSON`, name, err)
	}
	return result, nil
}

func resultOf(content []byte) (*wire.Result, error) {
	var g given
	if err := json.Unmarshal(content, &g, json.RejectUnknownMembers(true)); err != nil {
		return nil, misread(err)
	}
	out := &wire.Result{Status: g.Status, Headers: g.Headers, Source: g.Source, Trailers: g.Trailers}
	if len(g.Body) == 0 || json.Unmarshal(g.Body, &out.Body) == nil {
		return out, nil
	}
	// What is none of the API's own forms is the answer itself.
	if err := g.Body.Compact(); err != nil {
		return nil, misread(err)
	}
	out.Body = wire.Body{Content: g.Body}
	if !hasField(out.Headers, "Content-Type") {
		if out.Headers == nil {
			out.Headers = wire.Header{}
		}
		out.Headers["Content-Type"] = []string{"application/json"}
	}
	return out, nil
}

// misread says of a file what is wrong with it, in its own words and not in those of the program.
func misread(err error) error {
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("it is no valid JSON at byte %d", s.ByteOffset)
	}
	s, ok := errors.AsType[*json.SemanticError](err)
	where := ""
	if ok {
		where = strings.TrimPrefix(string(s.JSONPointer), "/")
	}
	switch {
	case where == "":
		return errors.New("it is no JSON object")
	case errors.Is(s.Err, json.ErrUnknownName):
		return fmt.Errorf("%s is unknown", where)
	case where == "headers":
		return errors.New("headers has a value that is neither a string nor a list of strings")
	}
	return fmt.Errorf("%s has a value that doesn't fit", where)
}
