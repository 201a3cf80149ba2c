package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"keep-proxy/internal/fakes/server"
)

// bodies are the kinds of bodies that a fake reads. Each gives values to variables.
var bodies = []func(*server.Request, values){readForm, readJSON, readGraphQL}

// readJSON gives json: the body, or null for what is no JSON.
func readJSON(r *server.Request, v values) {
	v["json"] = nil
	if parsed, err := parseJSON(r.Body); err == nil {
		v["json"] = parsed
	}
}

// parseJSON reads one value. Whole numbers are integers.
func parseJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return plainNumbers(out), nil
}

func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for name := range v {
			v[name] = plainNumbers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	}
	return v
}
