package main

import (
	"strings"
	"testing"
)

func TestAGivenResultIsReadAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, body, kind string
	}{
		{"a text", `{"status": 201, "body": "{\"id\": 7}"}`, `{"id": 7}`, ""},
		{"an object", `{"status": 201, "body": {"id": 7.0, "a": [1, null]}}`, `{"id":7.0,"a":[1,null]}`, "application/json"},
		{"a list", `{"status": 201, "body": [ ]}`, `[]`, "application/json"},
		{"an object of a type", `{"status": 201, "headers": {"content-type": "application/problem+json"}, "body": {}}`, `{}`, "application/problem+json"},
		{"bytes", `{"status": 201, "body": {"base64": "aGk="}}`, "hi", ""},
		{"nothing", `{"status": 204, "body": null}`, "", ""},
		{"no body", `{"status": 204}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := readResult(strings.NewReader(c.file), "-")
			if err != nil {
				t.Fatal(err)
			}
			kind := ""
			for _, values := range r.Headers {
				kind += strings.Join(values, ", ")
			}
			if string(r.Body.Content) != c.body || kind != c.kind || r.Body.Missing != "" {
				t.Errorf("read %q of type %q, want %q of %q", r.Body.Content, kind, c.body, c.kind)
			}
		})
	}
	// What a listing shows instead of a content is none.
	r, err := readResult(strings.NewReader(`{"status": 201, "body": {"missing": "omitted", "sha256": "00", "size": 2}}`), "-")
	if err != nil || r.Body.Missing == "" {
		t.Errorf("read %+v, %v", r, err)
	}
}

func TestAGivenResultThatIsNoneIsRefusedInWordsOfItsFile(t *testing.T) {
	t.Parallel()
	const how = `; write {"status": 201, "headers": {…}, "body": …}, where body is a text or JSON`
	for file, want := range map[string]string{
		`{"status": 201`:                       "it is no valid JSON at byte 14",
		`[]`:                                   "it is no JSON object",
		`{"status": "201"}`:                    "status has a value that doesn't fit",
		`{"status": 201, "headers": {"a": 1}}`: "headers has a value that is neither a string nor a list of strings",
		`{"status": 201, "text": ""}`:          "text is unknown",
	} {
		if _, err := readResult(strings.NewReader(file), "-"); err == nil || err.Error() != "--result: -: "+want+how {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}
