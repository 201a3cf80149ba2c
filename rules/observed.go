package rules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// MostObserved bounds what is kept of an observed request, in bytes. Beyond it the body is left out, then the fields.
const MostObserved = 4000

// Observed is what the history keeps of a request of no connector. Fields, members and path segments that look like
// credentials are masked.
type Observed struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitzero"`
	Body    string            `json:"body,omitzero"`
}

// worded is a path segment of words alone. Any other that is long may be a secret, such as a webhook's token.
var worded = regexp.MustCompile(`^[a-z._-]*$`)

// Observe says what is kept of a request. A body that is neither JSON nor a form is left out.
func Observe(req *Request, body []byte) Observed {
	nobody := &Operation{}
	kept := req.copy()
	kept.rawQuery = nobody.maskQuery(req.rawQuery)
	segments := slices.Clone(req.path.segments)
	for i, s := range segments {
		if len(s) >= 20 && !worded.MatchString(s) {
			segments[i] = secretShown
		}
	}
	if !slices.Equal(segments, req.path.segments) {
		kept.path = pathOf(segments, req.path.slash)
	}
	out := Observed{Method: req.Method, URL: kept.URL(), Headers: map[string]string{}}
	header, _ := maskHeader(req.Header, nobody.HidesField)
	for name, values := range header {
		out.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	if v, err := parseJSON(body); err == nil {
		masked := v.withoutCredentials("")
		out.Body = string(appendMasked(nil, &masked, nil))
	} else if strings.HasPrefix(req.Header.Get("Content-Type"), formType) {
		out.Body = nobody.maskQuery(string(body))
	}
	return out
}

// withoutCredentials is v with the members masked that have the name of a credential. Name is v's own.
func (v *jsonValue) withoutCredentials(name string) jsonValue {
	if NamedLikeCredential(name) {
		return stringValue(secretShown)
	}
	out := *v
	out.items = make([]jsonValue, len(v.items))
	for i := range v.items {
		inner := ""
		if v.kind == jsonObject {
			inner = v.names[i]
		}
		out.items[i] = v.items[i].withoutCredentials(inner)
	}
	return out
}

// String is o as the history keeps it, and as [ReadObserved] reads it.
func (o Observed) String() string {
	whole, bare := o, o
	bare.Body = ""
	for _, kept := range []Observed{whole, bare, {Method: o.Method, URL: o.URL}} {
		if text, err := json.Marshal(kept, json.Deterministic(true)); err == nil && len(text) <= MostObserved {
			return string(text)
		}
	}
	return `{"method":"` + o.Method + `"}`
}

// ReadObserved reads what String wrote.
func ReadObserved(text string) (o Observed, err error) {
	err = json.Unmarshal([]byte(text), &o)
	return o, err
}
