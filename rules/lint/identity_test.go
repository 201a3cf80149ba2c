package lint

import (
	"slices"
	"strings"
	"testing"

	"keep-proxy/rules"
)

func TestAKeyThatIsAnotherAtEachRunIsFound(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"identity: {x: header.traceparent}":                                      "volatile: identity.x reads the header field traceparent",
		"identity: {order: json.order, x: \"sha256(header['x-request-id'])\"}":   "volatile: identity.x reads the header field x-request-id",
		"subkey: \"header[?'idempotency-key'].orValue('')\"":                     "volatile: subkey reads the header field idempotency-key",
		"identity: {x: has(json.order)}":                                         "identity: is true or false",
		"identity: {kind: \"'pay'\", x: json.order == 'a', y: \"'x' in query\"}": "identity: is true or false",
		"identity: {x: has(json.order), order: json.order}":                      "",
		"identity: {x: json.express}":                                            "",
		"identity: {x: \"header['x-order']\"}":                                   "",
		"identity: none":                                                         "",
	} {
		findings := check(t, withOperation(line))
		i := slices.IndexFunc(findings, func(f rules.Finding) bool { return f.Code == "volatile" || f.Code == "identity" })
		switch {
		case findings.Failed(), want == "" && i >= 0, want != "" && i < 0:
			t.Errorf("%s: %v", line, findings)
		case want == "":
		case !strings.HasPrefix(findings[i].Code+": "+findings[i].Problem, want) || findings[i].Severity != rules.SeverityWarning || findings[i].Line == 0:
			t.Errorf("%s: %+v", line, findings[i])
		}
	}
	for lines, found := range map[[2]string]bool{
		{"native_key: {json: request_id}", "identity: {x: body_sha256}"}:                               true,
		{"native_key: {json: meta.request_id, when_present: keep_first}", "subkey: string(json.meta)"}: true,
		{"native_key: {form: key}", "identity: {x: \"form.map(k, k).join(',')\"}"}:                     true,
		{"native_key: {json: request_id, when_present: refuse}", "identity: {x: body_sha256}"}:         false,
		{"native_key: {json: request_id}", "identity: {x: json.order}"}:                                false,
		{"native_key: {header: Idempotency-Key}", "identity: {x: body_sha256}"}:                        false,
	} {
		findings := check(t, withOperation(lines[0], lines[1]))
		if got := slices.ContainsFunc(findings, func(f rules.Finding) bool { return f.Code == "volatile" }); got != found || findings.Failed() {
			t.Errorf("%s: %v", lines, findings)
		}
	}
	// With a subkey, what is true or false tells kinds apart.
	if findings := check(t, withOperation("identity: {x: has(json.order)}", "subkey: json.order")); len(findings) > 0 {
		t.Errorf("with a subkey: %v", findings)
	}
	// The native key's own place has a finding of its own, or is the script's word.
	if findings := check(t, withOperation(
		"native_key: {header: Idempotency-Key, when_present: keep_first}", "subkey: header['idempotency-key']")); len(findings) > 0 {
		t.Errorf("the native key: %v", findings)
	}
}
