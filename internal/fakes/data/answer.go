package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
)

// answer is an answer with one kind of body, or none.
type answer struct {
	Status int             `yaml:"status"`
	Header map[string]text `yaml:"header"`
	JSON   *template       `yaml:"json"`
	Text   *text           `yaml:"text"`
}

// answer builds an answer, with the fields that every answer has.
func (f *Fake) answer(a *answer, v values) (*server.Answer, error) {
	out, err := a.build(v)
	if err != nil {
		return nil, err
	}
	return out, fields(out.Header, v, f.file.Header)
}

// fields adds header fields. An empty one is left out.
func fields(into http.Header, v values, all ...map[string]text) error {
	for _, some := range all {
		for name, value := range some {
			said, err := value.str(v)
			if err != nil {
				return err
			}
			if said != "" {
				into.Set(name, said)
			}
		}
	}
	return nil
}

func (a *answer) build(v values) (*server.Answer, error) {
	out := &server.Answer{Status: cmp.Or(a.Status, http.StatusOK), Header: http.Header{}}
	switch {
	case a.JSON != nil:
		body, err := a.JSON.eval(v)
		if err != nil {
			return nil, err
		}
		if out.Body, err = json.Marshal(shown(body)); err != nil {
			return nil, err
		}
		out.Header.Set("Content-Type", "application/json")
	case a.Text != nil:
		body, err := a.Text.str(v)
		if err != nil {
			return nil, err
		}
		out.Body = []byte(body)
		out.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	return out, fields(out.Header, v, a.Header)
}

// Step is the error as a fault gives it.
func (e DocumentedError) Step() (script.Step, error) {
	a, err := e.Answer.build(values{})
	if err != nil {
		return script.Step{}, fmt.Errorf("errors: %s: %w", e.Name, err)
	}
	step := script.Step{Do: script.Status, Status: a.Status, Body: string(a.Body), Header: map[string]string{}}
	for name := range a.Header {
		step.Header[name] = a.Header.Get(name)
	}
	return step, nil
}

// hidden is what names begin with that the API keeps for itself.
const hidden = "__"

// shown is a value as the API writes it: without what is hidden, times as RFC 3339.
func shown(v any) any { return written(v, false) }

// stored is a value as the log holds it: as shown, with what is hidden.
func stored(v any) any { return written(v, true) }

func written(v any, all bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			if all || !strings.HasPrefix(name, hidden) || name == "__typename" {
				out[name] = written(value, all)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = written(v[i], all)
		}
		return out
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case absent:
		return nil
	}
	return v
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
