package rules

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// readers is a connector whose operations read one kind of place each.
const readers = connectorHead + `
  - name: json
    match: {method: POST, path: /json}
    effect: mutation
    identity: {kind: "'j'", name: json.?name, sub: json.?meta.?id}
    reconcile: [{none: why}]
    manual_check: look
  - name: form
    match: {method: POST, path: /form}
    effect: mutation
    identity: {kind: "'f'", name: form.?name}
    reconcile: [{none: why}]
    manual_check: look
  - name: query
    match: {method: POST, path: /query}
    effect: mutation
    identity: {kind: "'q'", name: query.?name}
    reconcile: [{none: why}]
    manual_check: look
  - name: header
    match: {method: POST, path: /header}
    effect: mutation
    identity: {kind: "'h'", name: "header[?'x-name'].orValue('')"}
    reconcile: [{none: why}]
    manual_check: look
  - name: digest
    match: {method: POST, path: /digest}
    effect: mutation
    identity: {of: body_sha256}
    payload: {headers: [X-Note]}
    reconcile: [{none: why}]
    manual_check: look
  - name: write
    match: {method: POST, path: /write}
    effect: mutation
    identity: {kind: "'w'", of: method}
    secret: [json.card]
    marker: {json: meta.keep_id}
    reconcile: [{none: why}]
    manual_check: look
`

// deriveRefusal is what deriving, then writing, refuses with.
func deriveRefusal(tb testing.TB, set *Set, req *Request) *Refusal {
	tb.Helper()
	m := set.Match(req)
	if m.Refusal != nil {
		return m.Refusal
	}
	if m.Operation == nil {
		tb.Fatalf("no operation: %+v", m)
	}
	if _, refusal := m.Operation.Derive(req, m); refusal != nil {
		return refusal
	}
	_, refusal := m.Operation.Outgoing(req, Mutation{ID: "i", Marker: "m", VendorKey: "k"})
	return refusal
}

// formHeader and jsonHeader declare a body.
const (
	formHeader = "Content-Type: application/x-www-form-urlencoded"
	jsonHeader = "Content-Type: application/json"
)

func TestBodiesThatTwoParsersReadDifferentlyAreRefused(t *testing.T) {
	t.Parallel()
	set := load(t, readers)
	deep := strings.Repeat("[", 1001) + strings.Repeat("]", 1001)
	cases := []struct {
		name, target, body string
		header             []string
		part               string
	}{
		{"a repeated name", "/json", `{"name":"a","name":"b"}`, nil, "repeats"},
		{"a repeated name spelt with an escape", "/json", `{"name":"a","n\u0061me":"b"}`, nil, "repeats"},
		{"a repeated name far from what is read", "/json", `{"name":"a","x":[{"y":1,"y":1}]}`, nil, "repeats"},
		{"names that differ in case, one of them read", "/json", `{"name":"a","Name":"b"}`, nil, "only in case"},
		{"a name that is read, in another case alone", "/json", `{"NAME":"b"}`, nil, "only in case"},
		{"a name in another case beside one that is read", "/json", `{"meta":{"id":"1"},"name":"n","Meta":{}}`, nil, "only in case"},
		{"a name in another case further down", "/json", `{"name":"a","meta":{"Id":"b"}}`, nil, "only in case"},
		{"a written place in another case", "/write", `{"Meta":{"keep_id":"mine"}}`, nil, "only in case"},
		{"a secret place in another case", "/write", `{"Card":"4242"}`, nil, "only in case"},
		{"a byte order mark before JSON", "/json", "\ufeff" + `{"name":"a"}`, nil, "byte order mark"},
		{"a byte order mark before declared JSON", "/json", "\ufeff" + `{"name":"a"}`, []string{jsonHeader}, "byte order mark"},
		{"a byte order mark before a form", "/form", "\ufeffname=a", []string{formHeader}, "byte order mark"},
		{"UTF-16 with its byte order mark", "/json", "\xff\xfe{\x00}\x00", nil, "byte order mark"},
		{"JSON with a comma too many", "/json", `{"name":"a",}`, nil, "can't be parsed"},
		{"JSON with a comment", "/json", `{"name":"a"/*b*/}`, nil, "can't be parsed"},
		{"JSON with single quotes", "/json", `{'name':'a'}`, nil, "can't be parsed"},
		{"two JSON values", "/json", `{"name":"a"}{"name":"b"}`, nil, "can't be parsed"},
		{"JSON with a trailing NUL", "/json", "{\"name\":\"a\"}\x00", nil, "can't be parsed"},
		{"JSON with invalid UTF-8", "/json", "{\"name\":\"\xff\"}", nil, "can't be parsed"},
		{"JSON with overlong UTF-8", "/json", "{\"name\":\"\xc0\xaf\"}", nil, "can't be parsed"},
		{"JSON with half a surrogate pair", "/json", `{"name":"\ud800"}`, nil, "half an emoji"},
		{"JSON with its other half", "/json", `{"name":"\ude00 x"}`, nil, "half an emoji"},
		{"JSON with NaN", "/json", `{"name":NaN}`, nil, "NaN"},
		{"JSON with infinity", "/json", `{"name":[1, -Infinity]}`, nil, "Infinity"},
		{"JSON with a number out of range", "/json", `{"name":1e400}`, nil, "number"},
		{"JSON with a leading zero", "/json", `{"name":007}`, nil, "can't be parsed"},
		{"JSON that is nested too deeply", "/json", `{"name":` + deep + `}`, nil, "can't be parsed"},
		{"JSON of too many values", "/json", "[" + strings.Repeat("0,", maxJSONValues) + "0]", nil, "too many values"},
		{"JSON declared in another charset", "/json", `{"name":"a"}`, []string{"Content-Type: application/json; charset=utf-16"}, "charset"},
		{"a charset beside a broken parameter", "/json", `{"name":"a"}`, []string{"Content-Type: application/json; charset=utf-16; x"}, "can't be parsed"},
		{"US-ASCII that isn't", "/json", `{"name":"é"}`, []string{"Content-Type: application/json; charset=us-ascii"}, "charset"},
		{"two charsets", "/json", `{"name":"a"}`, []string{"Content-Type: application/json; charset=utf-8; charset=utf-16"}, "can't be parsed"},
		{"two content types", "/json", `{"name":"a"}`, []string{jsonHeader, "Content-Type: text/plain"}, "more than once"},
		{"a form that is JSON too, read as a form", "/form", `{"q":"&name=b&"}`, []string{formHeader}, "JSON"},
		{"a repeated form field", "/form", "name=a&name=b", []string{formHeader}, "repeats"},
		{"a form field in another case", "/form", "name=a&NAME=b", []string{formHeader}, "only in case"},
		{"a form field in another case alone", "/form", "Name=b", []string{formHeader}, "only in case"},
		{"a form with a semicolon", "/form", "name=a;name=b", []string{formHeader}, "semicolon"},
		{"a form with a broken escape", "/form", "name=%zz", []string{formHeader}, "escape"},
		{"a form with overlong UTF-8", "/form", "name=%c0%af", []string{formHeader}, "UTF-8"},
		{"a form with a raw line break", "/form", "name=a\n", []string{formHeader}, "control character"},
		{"a form with a raw NUL", "/form", "name=a\x00b", []string{formHeader}, "control character"},
		{"a repeated query parameter", "/query?name=a&name=b", "", nil, "repeats"},
		{"a repeated query parameter, once escaped", "/query?name=a&n%61me=b", "", nil, "repeats"},
		{"a query parameter in another case", "/query?Name=a", "", nil, "only in case"},
		{"a query with a semicolon", "/query?name=a;b=c", "", nil, "semicolon"},
		{"a repeated header field", "/header", "", []string{"X-Name: a", "X-Name: b"}, "repeats"},
		{"a header field spelt with underscores too", "/header", "", []string{"X-Name: a", "X_Name: b"}, "underscore"},
		{"a header field spelt with underscores alone", "/header", "", []string{"X_Name: b"}, "underscore"},
		{"a header field that is no UTF-8", "/header", "", []string{"X-Name: a\xff"}, "UTF-8"},
		{"a payload header field that is no UTF-8", "/digest", "a", []string{"X-Note: a\xff"}, "UTF-8"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req, refusal := rawRequest("POST https://api.test"+tc.target, tc.body, tc.header...)
			if refusal == nil {
				refusal = deriveRefusal(t, set, req)
			}
			wantRefusal(t, refusal, ProblemAmbiguous, tc.part)
		})
	}
}

// What no expression reads may be as it likes: its bytes are payload.
func TestWhatNoExpressionReadsMayBeAmbiguous(t *testing.T) {
	t.Parallel()
	set := load(t, readers)
	cases := []struct {
		name, target, body string
		header             []string
	}{
		{"repeated JSON names, read as bytes", "/digest", `{"a":1,"a":2}`, nil},
		{"a byte order mark, read as bytes", "/digest", "\ufefftext", nil},
		{"invalid JSON, read as bytes", "/digest", `{"a"`, nil},
		{"names that differ in case, not read", "/json", `{"name":"a","x":{"A":1,"a":2}}`, nil},
		{"names that differ in case below another name", "/json", `{"name":"a","meta":{"id":"1","x":1,"X":2}}`, nil},
		{"repeated form fields that are not read", "/form", "name=a&b=1&b=2", []string{formHeader}},
		{"repeated query parameters that are not read", "/query?name=a&b=1&B=2&b=3", "", nil},
		{"a repeated header field that is not read", "/header", "", []string{"X-Name: a", "X-Other: 1", "X-Other: 2"}},
		{"a log text that begins with a bracket, read as bytes", "/digest", "[INFO] started", nil},
		{"text that begins with a bracket, in a form's operation", "/form", "[a]=1&name=b", []string{formHeader}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req := request(t, "POST https://api.test"+tc.target, tc.body, tc.header...)
			if refusal := deriveRefusal(t, set, req); refusal != nil {
				t.Errorf("refused: %v", refusal)
			}
		})
	}
}

// squeeze compresses a body.
func squeeze(tb testing.TB, coding, body string) string {
	tb.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "deflate":
		w, err = zlib.NewWriterLevel(&out, zlib.BestSpeed)
	case "br":
		w = brotli.NewWriterLevel(&out, brotli.BestSpeed)
	case "zstd":
		w, err = zstd.NewWriter(&out)
	default:
		w, err = gzip.NewWriterLevel(&out, gzip.BestSpeed)
	}
	if err == nil {
		_, err = io.WriteString(w, body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

func TestEncodedBodiesAreJudgedDecodedOrRefused(t *testing.T) {
	t.Parallel()
	set := load(t, readers)
	plain := `{"name":"a"}`
	zipped := squeeze(t, "gzip", plain)
	want := identityOf(derive(t, set, request(t, "POST https://api.test/json", plain)))
	cases := []struct{ name, coding, body, part string }{
		{"gzip", "gzip", zipped, ""},
		{"gzip by its old name and in capitals", "X-GZIP", zipped, ""},
		{"deflate", "deflate", squeeze(t, "deflate", plain), ""},
		{"identity", "identity", plain, ""},
		{"a stack of two codings", "gzip, gzip", squeeze(t, "gzip", zipped), ""},
		{"a stack of four codings", "gzip, gzip, gzip, gzip", zipped, "not one that is understood"},
		{"a stack of which one isn't there", "br, gzip", zipped, "not in its declared"},
		{"a coding that nobody knows", "compress", zipped, "not one that is understood"},
		{"a coding after identity", "identity, gzip", zipped, "not one that is understood"},
		{"brotli that is none", "br", zipped, "not in its declared"},
		{"brotli", "br", squeeze(t, "br", plain), ""},
		{"zstd that is none", "zstd", zipped, "not in its declared"},
		{"zstd", "zstd", squeeze(t, "zstd", plain), ""},
		{"declared but plain", "gzip", plain, "not in its declared"},
		{"cut", "gzip", zipped[:len(zipped)-4], "not in its declared"},
		{"with a wrong checksum", "gzip", zipped[:len(zipped)-8] + "\x00\x00\x00\x00" + zipped[len(zipped)-4:], "not in its declared"},
		{"two members", "gzip", zipped + zipped, "more than one stream"},
		{"with something after it", "gzip", zipped + "x", "more than one stream"},
		{"deflate with something after it", "deflate", squeeze(t, "deflate", plain) + "x", "more than one stream"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req := request(t, "POST https://api.test/json", tc.body, "Content-Encoding: "+tc.coding)
			if tc.part != "" {
				wantRefusal(t, deriveRefusal(t, set, req), ProblemAmbiguous, tc.part)
				return
			}
			if got := identityOf(derive(t, set, req)); got != want {
				t.Errorf("identity %s, want %s", got, want)
			}
		})
	}
}

func TestABodyThatGrowsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	set := load(t, connectorHead+simpleMutation)
	bomb := squeeze(t, "gzip", strings.Repeat(" ", maxDecoded+1))
	req := request(t, "POST https://api.test/things/a", bomb, "Content-Encoding: gzip")
	wantRefusal(t, deriveRefusal(t, set, req), ProblemTooLarge, "64 MiB")
}
