package wire_test

import (
	stdjson "encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"keep-proxy/admin/wire"
)

func TestBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		body wire.Body
		text string
	}{
		{"nothing", wire.Body{}, `""`},
		{"text", wire.Text("a \"quoted\" ü"), `"a \"quoted\" ü"`},
		{"bytes that are no text", wire.Body{Content: []byte{0xff, 0}}, `{"base64":"/wA="}`},
		{"content that was dropped", wire.Body{Missing: wire.MissingDropped, SHA256: "ab", Size: 3}, `{"missing":"dropped","sha256":"ab","size":3}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for name, codec := range codecs {
				got, err := codec.marshal(c.body)
				if err != nil || string(got) != c.text {
					t.Errorf("%s writes %s, %v; want %s", name, got, err, c.text)
				}
				var back wire.Body
				if err := codec.unmarshal([]byte(c.text), &back); err != nil || string(back.Content) != string(c.body.Content) ||
					back.Missing != c.body.Missing || back.SHA256 != c.body.SHA256 || back.Size != c.body.Size {
					t.Errorf("%s reads %+v, %v; want %+v", name, back, err, c.body)
				}
			}
		})
	}
}

// codecs are both JSON packages: a user of the client may take either.
var codecs = map[string]struct {
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
}{
	"encoding/json": {stdjson.Marshal, stdjson.Unmarshal},
	"json v2": {
		func(v any) ([]byte, error) { return json.Marshal(v) },
		func(b []byte, v any) error { return json.Unmarshal(b, v) },
	},
}

func TestBodyRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a number": `1`, "a list": `["a"]`, "an empty object": `{}`, "base64 with a fault": `{"base64":"*"}`,
		"another member": `{"base64":"","text":""}`, "two forms": `{"base64":"","missing":"dropped"}`, "no base64": `{"base64":null}`,
	} {
		var b wire.Body
		if err := json.Unmarshal([]byte(text), &b); err == nil || !strings.Contains(err.Error(), "a body is a string") {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	h := wire.Header{"B": {"1", "2"}, "A": {"x"}, "C": {}}
	for name, codec := range codecs {
		got, err := codec.marshal(h)
		if err != nil || string(got) != `{"A":"x","B":["1","2"],"C":[]}` {
			t.Errorf("%s writes %s, %v", name, got, err)
		}
		var back wire.Header
		if err := codec.unmarshal(got, &back); err != nil || len(back) != 3 || !slices.Equal(back["B"], h["B"]) || !slices.Equal(back["A"], h["A"]) {
			t.Errorf("%s reads %v, %v", name, back, err)
		}
	}
	var one wire.Header
	if err := json.Unmarshal([]byte(`{"A":["x"]}`), &one); err != nil || !slices.Equal(one["A"], []string{"x"}) {
		t.Errorf("a list of one: %v, %v", one, err)
	}
}

func TestHeaderRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a list": `[]`, "a number": `{"A":1}`, "null for a value": `{"A":null}`, "a list of numbers": `{"A":[1]}`,
		"null in a list": `{"A":[null]}`, "an object": `{"A":{}}`, "a name twice": `{"A":"x","A":"y"}`,
	} {
		var h wire.Header
		if err := json.Unmarshal([]byte(text), &h); err == nil {
			t.Errorf("%s is read as %v", name, h)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	type timed struct {
		TTL wire.Duration `json:"ttl,omitzero"`
	}
	for name, codec := range codecs {
		got, err := codec.marshal(timed{wire.Duration(90 * time.Minute)})
		if err != nil || string(got) != `{"ttl":"1h30m0s"}` {
			t.Errorf("%s writes %s, %v", name, got, err)
		}
		var back timed
		if err := codec.unmarshal([]byte(`{"ttl":"90s"}`), &back); err != nil || back.TTL != wire.Duration(90*time.Second) {
			t.Errorf("%s reads %v, %v", name, back.TTL, err)
		}
		if err := codec.unmarshal([]byte(`{"ttl":"90"}`), &back); err == nil || !strings.Contains(err.Error(), "write it like 90s") {
			t.Errorf("%s: a duration without a unit: %v", name, err)
		}
	}
}

func TestProblemIsAnError(t *testing.T) {
	t.Parallel()
	p := &wire.Problem{Type: wire.ProblemPrefix + "version", Title: "The record has changed"}
	if p.Error() != "The record has changed" || p.Name() != "version" {
		t.Errorf("%s, %s", p.Error(), p.Name())
	}
	if p.Detail = "Read it again."; p.Error() != "Read it again." {
		t.Errorf("got %s", p.Error())
	}
}

func TestStoppedIsFlat(t *testing.T) {
	t.Parallel()
	s := wire.Stopped{Blocks: wire.Blocks{Scope: "item", Name: "w/i"}, Mutation: "m-1", State: "indeterminate"}
	for name, codec := range codecs {
		if got, err := codec.marshal(s); err != nil || !strings.HasPrefix(string(got), `{"scope":"item","name":"w/i","mutation":"m-1"`) {
			t.Errorf("%s writes %s, %v", name, got, err)
		}
	}
}
