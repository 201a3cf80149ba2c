package rules

import (
	"slices"
	"testing"
)

func TestCredentialsOfARequestAreWhatIsMaskedInIt(t *testing.T) {
	t.Parallel()
	_, op := operation(t, `
  - name: make
    match: {method: POST, path: "/bot{token}/{kind}"}
    effect: mutation
    identity: {kind: path.kind}
    describe: "{header['x-sort-team']}"
    secret: [path.token, query.code, header.passphrase, json.card.number, "json.users[*].pin", form.pin]
    reconcile: [{none: why}]
    manual_check: look
`)
	const url = "POST https://api.test/botpath-1/send?code=query-1&api_key=query%2D2&page_token=p&a=b"
	fields := []string{"Authorization: Bearer field-1", "Cookie: sid=field-2; theme=field-3", "X-Functions-Key: field-4", "Passphrase: field-5", "Keep-Subkey: s",
		`X-Auth: Token token="field-6", realm="r", oauth_signature=field-7`, "X-Sort-Team: named", "Accept: */*"}
	always := []string{"path-1", "query-1", "query-2", "Bearer field-1", "sid=field-2; theme=field-3", "field-2", "field-3", "field-4", "field-5",
		`Token token="field-6", realm="r", oauth_signature=field-7`, "field-6", "field-7"}
	for body, more := range map[string][]string{
		`{"card":{"number":"json-1","name":"n"},"users":[{"pin":"json-2","id":1},{"pin":3}]}`: {"json-1", "json-2"},
		`{"card":"json-1"}`: {"json-1"},
		"":                  nil,
	} {
		want := slices.Concat(always, more)
		got := op.Credentials(request(t, url, body, fields...))
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", body, got, want)
		}
	}
	if got := op.Credentials(request(t, "POST https://api.test/bot1/send?a=b;api_key=query%2D1&tok%zzen=query-2", "")); !slices.Equal(got, []string{"query-1", "query-2", "1"}) {
		t.Errorf("of a query that can't be read: %q", got)
	}
	form := op.Credentials(request(t, "POST https://api.test/bot1/send", "pin=form-1&a=b", formHeader))
	if !slices.Equal(form, []string{"1", "form-1"}) {
		t.Errorf("of a form: %q", form)
	}
}
