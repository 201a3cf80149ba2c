package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatANativeKeyMayBe(t *testing.T) {
	t.Parallel()
	for keys, part := range map[string]string{
		"header: K, charset: a-zA-Z0-9_-":                                    "",
		"header: K, charset: a-zA-Z0-9":                                      "has the characters",
		"header: K, format: hex, charset: a-zA-Z0-9":                         "",
		"header: K, format: token, charset: a-f0-9":                          "has the characters",
		"header: K, format: token, charset: a-z0-9, min_length: 16":          "",
		"header: K, charset: '^a'":                                           "no set of characters",
		"header: K, charset: 'a]|[b'":                                        "no set of characters",
		"header: K, charset: 'z-a'":                                          "no set of characters",
		"header: K, charset: ''":                                             "is empty",
		"header: K, min_length: 36":                                          "",
		"header: K, min_length: 37":                                          "has 36 characters",
		"header: K, format: hex, min_length: 40":                             "",
		"header: K, format: hex, min_length: 37, max_length: 36":             "has 36 characters",
		"header: K, format: token, min_length: 53":                           "has 52 characters",
		"header: K, replays: sometimes":                                      "not one of its values",
		"header: K, mismatch: refused":                                       "not one of its values",
		"json: \"headers['idempotencyKey']\", replays: all, mismatch: error": "",
	} {
		_, findings := Load([]File{{Name: "f.yaml", Data: []byte(withOperation("native_key: {" + keys + "}"))}}, nil, Defaults{})
		if part == "" && findings.Failed() || part != "" && !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Problem, part) && f.Line > 0 }) {
			t.Errorf("%s\n%v, want …%s…", keys, findings, part)
		}
	}
}

// Brevo takes its key so.
func TestANativeKeyMayBeAHeaderInAJSONBody(t *testing.T) {
	t.Parallel()
	set, op := operation(t, mutationWith(`native_key: {json: "headers['idempotencyKey']", window: 30m}`))
	var digests []string
	for _, body := range []string{`{"subject":"s","headers":{"X-A":"b"}}`, `{"subject":"s","headers":{"X-A":"b","idempotencyKey":"mine"}}`} {
		req := request(t, "POST https://api.test/things", body)
		out, refusal := op.Outgoing(req, sample())
		if refusal != nil {
			t.Fatal(refusal)
		}
		if want := `{"subject":"s","headers":{"X-A":"b","idempotencyKey":"` + CaseVendorKey + `"}}`; string(out.Body()) != want {
			t.Errorf("sends %s", out.Body())
		}
		digests = append(digests, derive(t, set, req).PayloadDigest)
	}
	if digests[0] != digests[1] {
		t.Error("the script's own key is payload")
	}
}
