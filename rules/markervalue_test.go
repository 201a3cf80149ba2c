package rules

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

const (
	// slackMarker is Slack's metadata, which its SDKs send as JSON, or as JSON text in a form.
	slackMarker = `marker:
      - {json: metadata, value: {event_type: keep, event_payload: {keep_id: {cel: mutation.marker}}}}
      - {form: metadata, value: {event_type: keep, event_payload: {keep_id: {cel: mutation.marker}}}}`
	// jiraMarker is a property of an issue, notionMarker a piece of rich text.
	jiraMarker   = `marker: {append: json.properties, value: {key: keep, value: {id: {cel: mutation.marker}}}}`
	notionMarker = `marker: {append: "json.properties['Keep'].rich_text", value: {text: {content: {cel: "'keep:' + mutation.marker"}}}, max_length: 3}`
	slackMade    = `{"event_type":"keep","event_payload":{"keep_id":"` + CaseMarker + `"}}`
)

func TestAMarkersValueIsMergedOrAppended(t *testing.T) {
	t.Parallel()
	const jira, notion = `{"key":"keep","value":{"id":"` + CaseMarker + `"}}`, `{"text":{"content":"keep:` + CaseMarker + `"}}`
	for _, tc := range []struct {
		name, keys, body, want string
		header                 []string
	}{
		{"an object is made", slackMarker, `{"text": "hi"}`, `{"text": "hi","metadata":` + slackMade + `}`, nil},
		{"the script's own members stay", slackMarker, `{"metadata": {"event_type":"paid", "event_payload": { "n":1.50 } }}`,
			`{"metadata": {"event_type":"paid", "event_payload": { "n":1.50 ,"keep_id":"` + CaseMarker + `"} }}`, nil},
		{"what holds the marker is set", slackMarker, `{"metadata":{"event_payload":{"keep_id":{"of":"another"}}}}`,
			`{"metadata":{"event_payload":{"keep_id":"` + CaseMarker + `"},"event_type":"keep"}}`, nil},
		{"an object below names", `marker: {json: a.b, value: {c: {cel: mutation.marker}}}`, `{}`, `{"a":{"b":{"c":"` + CaseMarker + `"}}}`, nil},
		{"names that expressions quote", `marker: {json: "['a.b']", value: {"c d": {cel: mutation.marker}}}`, `{"a.b":{}}`, `{"a.b":{"c d":"` + CaseMarker + `"}}`, nil},
		{"what the request lacks is left out", `marker: {json: m, value: {a: {cel: json.?none}, b: {cel: mutation.marker}}}`, `{}`, `{"m":{"b":"` + CaseMarker + `"}}`, nil},
		{"a list in it is one value", `marker: {json: m, value: {a: [x, {cel: mutation.marker}], n: 7.10}}`, `{"m":{"a":[1]}}`, `{"m":{"a":["x","` + CaseMarker + `"],"n":7.10}}`, nil},
		{"JSON text in a form", slackMarker, "text=a+b", "text=a+b&metadata=" + url.QueryEscape(slackMade), []string{formHeader}},
		{"JSON text that the form has", slackMarker, "metadata=" + url.QueryEscape(`{ "event_type":"paid","event_payload":{"n":[]}}`) + "&text=a",
			"metadata=" + escapePair(`{ "event_type":"paid","event_payload":{"n":[],"keep_id":"`+CaseMarker+`"}}`) + "&text=a", []string{formHeader}},
		{"no body is a form", slackMarker, "", "metadata=" + url.QueryEscape(slackMade), nil},
		{"a list is made", jiraMarker, `{"fields":{}}`, `{"fields":{},"properties":[` + jira + `]}`, nil},
		{"a list of null", jiraMarker, `{"properties":null}`, `{"properties":[` + jira + `]}`, nil},
		{"an empty list", jiraMarker, `{"properties": [ ]}`, `{"properties": [` + jira + `]}`, nil},
		{"a list with elements", jiraMarker, `{"properties":[ {"key":"a"}, [ ] ]}`, `{"properties":[ {"key":"a"}, [ ],` + jira + `]}`, nil},
		{"rich text", notionMarker, `{"properties":{"Keep":{"rich_text":[{"text":{"content":"x"}}]}}}`, `{"properties":{"Keep":{"rich_text":[{"text":{"content":"x"}},` + notion + `]}}}`, nil},
		{"rich text of nothing", notionMarker, `{"properties":{}}`, `{"properties":{"Keep":{"rich_text":[` + notion + `]}}}`, nil},
		{"no room in the list", notionMarker, `{"properties":{"Keep":{"rich_text":[1,2,3]}}}`, `{"properties":{"Keep":{"rich_text":[1,2,3]}}}`, nil},
		{"text behind a form's", `marker: {append: form.text, text: " [{mutation.marker}]"}`, "text=a%20b&x=1", "text=a+b+%5B" + CaseMarker + "%5D&x=1", []string{formHeader}},
		{"text of a form that has none", `marker: {append: form.text, text: "[{mutation.marker}]"}`, "x=1", "x=1&text=%5B" + CaseMarker + "%5D", []string{formHeader}},
		{"a list in a form", `marker: {append: form.blocks, value: {id: {cel: mutation.marker}}}`, "blocks=" + url.QueryEscape(`[{"a":1}]`),
			"blocks=" + escapePair(`[{"a":1},{"id":"`+CaseMarker+`"}]`), []string{formHeader}},
		{"a list that the form lacks", `marker: {append: form.blocks, value: {cel: mutation.marker}}`, "x=1", "x=1&blocks=" + escapePair(`["`+CaseMarker+`"]`), []string{formHeader}},
		{"several places in one body", `marker: [{json: a}, {json: b, value: {c: {cel: mutation.marker}}}, {form: d}]`, `{"a":1}`, `{"a":"` + CaseMarker + `","b":{"c":"` + CaseMarker + `"}}`, nil},
		{"one of several has no room", `marker: [{json: a}, {append: json.t, text: "{mutation.marker}", max_length: 25}]`, `{"a":1,"t":"xx"}`, `{"a":1,"t":"xx"}`, nil},
		{"no room where nothing is written", `marker: [{json: a}, {append: form.t, text: "x{mutation.marker}", max_length: 24}]`, `{"a":1}`, `{"a":"` + CaseMarker + `"}`, nil},
		{"beside a native key", "native_key: {json: headers.idempotencyKey}\n    " + slackMarker, `{"headers":{"a":"b"}}`,
			`{"headers":{"a":"b","idempotencyKey":"` + CaseVendorKey + `"},"metadata":` + slackMade + `}`, nil},
	} {
		_, op := operation(t, mutationWith(tc.keys))
		req := request(t, "POST https://api.test/things", tc.body, tc.header...)
		mu := sample()
		mu.Unmarked = op.Unmarked(req)
		out, refusal := op.Outgoing(req, mu)
		if refusal != nil {
			t.Errorf("%s: %v", tc.name, refusal)
			continue
		}
		if got := string(out.Body()); got != tc.want {
			t.Errorf("%s: sends %s\nwant %s", tc.name, got, tc.want)
		}
		if mu.Unmarked == strings.Contains(tc.want, CaseMarker) {
			t.Errorf("%s: unmarked %t", tc.name, mu.Unmarked)
		}
	}
}

func TestAMarkerInTheQueryIsWrittenBesideEveryBody(t *testing.T) {
	t.Parallel()
	_, op := operation(t, mutationWith(`marker: [{query: metadata, value: {id: {cel: mutation.marker}}}, {form: keep}]`))
	for body, want := range map[string]string{"": "", "a=1": "a=1&keep=" + CaseMarker, `{"a":1}`: `{"a":1}`} {
		header := formHeader
		if strings.HasPrefix(body, "{") {
			header = "Content-Type: application/json"
		}
		out, refusal := op.Outgoing(request(t, "POST https://api.test/things?x=1", body, header), sample())
		if refusal != nil {
			t.Fatalf("%q: %v", body, refusal)
		}
		if out.URL() != "https://api.test/things?x=1&metadata="+escapePair(`{"id":"`+CaseMarker+`"}`) || string(out.Body()) != want {
			t.Errorf("%q: sends %s %s", body, out.URL(), out.Body())
		}
	}
	if !op.OwnAddress() {
		t.Error("a request with a marker in its query may follow to another address")
	}
}

func TestAMarkersValueRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 2*maxJSONDepth) + strings.Repeat("]", 2*maxJSONDepth)
	for name, tc := range map[string]struct {
		keys, body string
		header     []string
		problem    Problem
		part       string
	}{
		"a text in the object's place":     {slackMarker, `{"metadata":"x"}`, nil, ProblemIdentity, "no object"},
		"a list in the object's place":     {slackMarker, `{"metadata":[]}`, nil, ProblemIdentity, "no object"},
		"null in the object's place":       {slackMarker, `{"metadata":null}`, nil, ProblemIdentity, "no object"},
		"something else below it":          {slackMarker, `{"metadata":{"event_payload":1}}`, nil, ProblemIdentity, "no object"},
		"a name in another case":           {slackMarker, `{"Metadata":{}}`, nil, ProblemAmbiguous, "only in case"},
		"a name in another case below it":  {slackMarker, `{"metadata":{"event_payload":{"Keep_Id":1}}}`, nil, ProblemAmbiguous, "only in case"},
		"an object in the list's place":    {jiraMarker, `{"properties":{}}`, nil, ProblemIdentity, "other than a list"},
		"a text in the list's place":       {jiraMarker, `{"properties":"[]"}`, nil, ProblemIdentity, "other than a list"},
		"a body of no kind":                {slackMarker, "hello", []string{"Content-Type: text/plain"}, ProblemIdentity, "of a kind"},
		"a body of no kind in a list":      {`marker: [{form: a}, {form: b}]`, `{"a":1}`, nil, ProblemIdentity, "of a kind"},
		"JSON that repeats a name":         {slackMarker, `{"a":1,"a":2}`, nil, ProblemAmbiguous, "repeats"},
		"text in a form that is no JSON":   {slackMarker, "metadata=paid", []string{formHeader}, ProblemIdentity, "invalid JSON"},
		"an empty text in a form":          {slackMarker, "metadata=", []string{formHeader}, ProblemIdentity, "invalid JSON"},
		"a form's text that repeats":       {slackMarker, "metadata=" + url.QueryEscape(`{"a":1,"a":2}`), []string{formHeader}, ProblemIdentity, "duplicate"},
		"a form's text that is deep":       {slackMarker, "metadata=" + url.QueryEscape(deep), []string{formHeader}, ProblemIdentity, "nested too deeply"},
		"a form's text of many values":     {slackMarker, "metadata=[1" + strings.Repeat(",1", maxJSONValues) + "]", []string{formHeader}, ProblemIdentity, "too many values"},
		"a list in the form's object":      {slackMarker, "metadata=[]", []string{formHeader}, ProblemIdentity, "no object"},
		"another case in a form's text":    {slackMarker, "metadata=" + url.QueryEscape(`{"Event_Type":1}`), []string{formHeader}, ProblemAmbiguous, "only in case"},
		"a field that comes twice":         {slackMarker, "metadata={}&metadata={}", []string{formHeader}, ProblemAmbiguous, "repeats a name"},
		"text behind a field that repeats": {`marker: {append: form.a, text: "{mutation.marker}"}`, "a=1&a=2", []string{formHeader}, ProblemAmbiguous, "repeats a name"},
		"an object in a form's list":       {`marker: {append: form.a, value: {cel: mutation.marker}}`, "a={}", []string{formHeader}, ProblemIdentity, "other than a list"},
		"a value without value":            {`marker: {json: m, value: {a: {cel: json.none}, b: {cel: mutation.marker}}}`, `{}`, nil, ProblemIdentity, "no value"},
		"a marker that is absent":          {`marker: {json: m, value: {b: {cel: "has(json.x) ? optional.of(mutation.marker) : optional.none()"}}}`, `{}`, nil, ProblemIdentity, "no value"},
		"a digest of the body":             {slackMarker, `{}`, []string{"Content-Digest: sha-256=:x:"}, ProblemAmbiguous, "Content-Digest"},
	} {
		_, op := operation(t, mutationWith(tc.keys))
		_, refusal := op.Outgoing(request(t, "POST https://api.test/things", tc.body, tc.header...), sample())
		if wantRefusal(t, refusal, tc.problem, tc.part); t.Failed() {
			t.Fatal(name)
		}
	}
}

// Who sends the same again, with or without what an answer showed of our marker, asks for the same.
func TestAMarkersValueIsNoPayload(t *testing.T) {
	t.Parallel()
	form := func(text string) string { return "text=a&metadata=" + url.QueryEscape(text) }
	for name, tc := range map[string]struct {
		keys     string
		header   string
		a, b     string
		likeness Likeness
	}{
		"the marker of before":                {slackMarker, "", `{"metadata":{"event_payload":{"n":1}}}`, `{"metadata":{"event_payload":{"keep_id":"old","n":1}}}`, Equivalent},
		"another member beside it":            {slackMarker, "", `{"metadata":{"event_payload":{"n":1}}}`, `{"metadata":{"event_payload":{"n":2}}}`, Significant},
		"what stays of the script":            {slackMarker, "", `{"metadata":{"event_type":"a"}}`, `{"metadata":{"event_type":"b"}}`, Significant},
		"the marker of before in a form":      {slackMarker, formHeader, form(`{"event_payload":{"n":1}}`), form(`{"event_payload":{"keep_id":"old", "n":1}}`), Equivalent},
		"another member beside it in a form":  {slackMarker, formHeader, form(`{"event_payload":{"n":1}}`), form(`{"event_payload":{"n":2}}`), Significant},
		"another spelling of a form's text":   {slackMarker, formHeader, form(`{"event_type":"a","event_payload":{}}`), form(`{ "event_payload": {}, "event_type": "\u0061" }`), Equivalent},
		"a form's text that is no JSON":       {slackMarker, formHeader, form(`x`), form(`y`), Significant},
		"other elements of the script's list": {jiraMarker, "", `{"properties":[{"key":"a"}]}`, `{"properties":[{"key":"b"}]}`, Significant},
	} {
		set, op := operation(t, mutationWith(tc.keys))
		var both []*Request
		var digests []string
		for _, body := range []string{tc.a, tc.b} {
			header := []string{"Content-Type: application/json"}
			if tc.header != "" {
				header = []string{tc.header}
			}
			req := request(t, "POST https://api.test/things", body, header...)
			both, digests = append(both, req), append(digests, derive(t, set, req).PayloadDigest)
		}
		c := op.Compare(both[0], both[1])
		if (digests[0] == digests[1]) != (tc.likeness == Equivalent) || c.Likeness != tc.likeness {
			t.Errorf("%s: %v %+v", name, digests, c)
		}
	}
}

func TestWhatAMarkerMayBe(t *testing.T) {
	t.Parallel()
	for keys, part := range map[string]string{
		"marker: []":                                                                                 "is empty",
		"marker: [{json: a, form: b}]":                                                               "exactly one place",
		"marker: {text: '{mutation.marker}'}":                                                        "exactly one place",
		"marker: {json: a, value: {b: c}}":                                                           "does not hold the marker",
		"marker: {json: a, value: {cel: mutation.marker}}":                                           "is no map",
		"marker: {json: a, value: [{cel: mutation.marker}]}":                                         "is no map",
		"marker: {form: a, value: x}":                                                                "is no map",
		"marker: {json: a, text: '{mutation.marker}', value: {b: c}}":                                "either a text or a value",
		"marker: {append: json.a}":                                                                   "append needs a text",
		"marker: {append: path.a, value: {cel: mutation.marker}}":                                    "can't be used here",
		"marker: {append: 'json.a[0].b', value: {cel: mutation.marker}}":                             "one in a list",
		"marker: {append: json.a, value: '{mutation.marker}'}":                                       "does not hold the marker",
		"marker: {json: a, value: {b: {cel: mutation.marker}}, max_length: 9}":                       "says nothing of a merged value",
		"marker: {append: json.a, value: {cel: mutation.marker}, max_length: 1KiB}":                  "whole number",
		"marker: [{json: x}, {json: a, value: {name: {cel: mutation.marker}}}]":                      "",
		"marker: [{json: x}, {json: name}]":                                                          "which identity.name reads",
		"marker: {json: name, value: {id: {cel: mutation.marker}}}":                                  "",
		"identity: {a: json.m.id}\n    marker: {json: m, value: {id: {cel: mutation.marker}, x: y}}": "the marker goes to json.m.id, which identity.a reads",
		"identity: {a: json.m.x}\n    marker: {json: m, value: {id: {cel: mutation.marker}, x: y}}":  "",
		"identity: {a: json.m}\n    marker: {append: json.m, value: {cel: mutation.marker}}":         "",
	} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte(withOperation(strings.Split(keys, "\n    ")...))}}, nil, Defaults{})
		if part == "" && findings.Failed() || part != "" && !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Problem, part) && f.Line > 0 }) {
			t.Errorf("%s\n%v, want …%s…", keys, findings, part)
		}
	}
}

func TestACaseSaysWhatAMarkersValueSends(t *testing.T) {
	t.Parallel()
	file := connectorHead + mutationWith(slackMarker) + `cases:
  - name: JSON
    request: {method: POST, url: "https://api.test/things", body: {text: a}}
    expect: {sent: [{method: POST, url: "https://api.test/things", body: {text: a, metadata: {event_type: keep, event_payload: {keep_id: ` + CaseMarker + `}}}}]}
  - name: a form
    request: {method: POST, url: "https://api.test/things", headers: {content-type: application/x-www-form-urlencoded}, body: "text=a"}
    expect: {sent: [{method: POST, url: "https://api.test/things", body: "text=a&metadata=` + url.QueryEscape(slackMade) + `"}]}
  - name: another kind
    request: {method: POST, url: "https://api.test/things", headers: {content-type: text/plain}, body: "x"}
    expect: {refused: identity}
`
	if findings := load(t, file).RunCases(); len(findings) > 0 {
		t.Error(findings)
	}
	if findings := load(t, strings.Replace(file, "event_type: keep, event_payload: {keep_id: "+CaseMarker, "event_type: other, event_payload: {keep_id: "+CaseMarker, 1)).RunCases(); len(findings) == 0 {
		t.Error("another body passes")
	}
}

func TestAMarkersPlaceReadsParameters(t *testing.T) {
	t.Parallel()
	file := strings.Replace(connectorHead, "operations:", "parameters: {title: {type: text, default: Na me}, field: {type: text, default: customfield_1}}\noperations:", 1) +
		mutationWith(`marker: [{append: "json.properties['{param.title}'].title", value: {cel: mutation.marker}}, {json: "fields['{param.field}']", value: {id: {cel: mutation.marker}}}]`)
	out, refusal := load(t, file).Connectors()[0].Operations[0].Outgoing(request(t, "POST https://api.test/things", `{}`), sample())
	if refusal != nil {
		t.Fatal(refusal)
	}
	if want := `{"properties":{"Na me":{"title":["` + CaseMarker + `"]}},"fields":{"customfield_1":{"id":"` + CaseMarker + `"}}}`; string(out.Body()) != want {
		t.Errorf("sends %s", out.Body())
	}
}
