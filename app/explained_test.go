package app

import (
	"net/http"
	"strings"
	"testing"

	"keep-proxy/admin/wire"
	"keep-proxy/config"
	"keep-proxy/rules"
)

// askingRule is a connector that asks the API whose data is changed.
const askingRule = `apiVersion: keep/v1
connector: chat
version: 1
hosts: [chat.test]
reads: safe-methods
account: {get: /auth.test, value: response.json.team}
operations:
  - name: post
    match: {method: POST, path: /post}
    effect: mutation
    describe: "Post to {form.channel} of {account}"
    identity: {channel: form.channel}
    native_key: {header: Idempotency-Key}
    reconcile: [none: "it keeps no list"]
    manual_check: "Look in {form.channel}"
  - name: order
    match: {method: POST, path: /order}
    effect: mutation
    describe: "Order {json.ref}"
    identity: {ref: json.ref}
    reconcile: [none: "it keeps no list"]
    manual_check: "Look for {json.ref}"
`

func explainedBy(t *testing.T, e wire.Explain) Explained {
	t.Helper()
	set, findings := rules.Load([]rules.File{{Name: "chat.yaml", Data: []byte(askingRule)}}, nil, RuleDefaults(config.Default()))
	if set == nil {
		t.Fatal(findings)
	}
	raw, err := RawRequest(e)
	if err != nil {
		t.Fatal(err)
	}
	return ExplainRequest(set, raw, ScopeOf(e))
}

func form(content, account string) wire.Explain {
	return wire.Explain{
		Method: http.MethodPost, URL: "https://chat.test/post", Body: wire.Text(content), Account: account,
		Headers: wire.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
	}
}

func TestWhatIsKnownWithoutTheAccountIsExplained(t *testing.T) {
	t.Parallel()
	bare, one, other := explainedBy(t, form("channel=c", "")), explainedBy(t, form("channel=c", "T1")), explainedBy(t, form("channel=c", "T2"))
	for name, x := range map[string]Explained{"without": bare, "with": one} {
		if x.Refused != "" || x.Effect != "mutation" || x.Operation != "post" || x.Ident["channel"] != `"c"` || x.PayloadDigest == "" {
			t.Errorf("%s an account it is %+v", name, x)
		}
		if x.AccountAsked != "GET /auth.test" {
			t.Errorf("%s an account it would be asked by %q", name, x.AccountAsked)
		}
	}
	if bare.Key+bare.ID+bare.Marker+bare.VendorKey+bare.Account != "" || bare.Target != "Post to c of ACCOUNT" {
		t.Errorf("without an account it has a key: %+v", bare)
	}
	if one.Account != "T1" || one.Target != "Post to c of T1" || one.Key == "" || one.VendorKey == "" || one.Key == other.Key {
		t.Errorf("the account is not in the key: %+v and %+v", one, other)
	}
}

func TestAValueThatIsMissingIsExplainedByTheContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, kind, body, want string
	}{
		{"a form that isn't declared", "/post", "", "channel=c", "; the content was not taken for a form, as it has no Content-Type"},
		{"a form that is declared as text", "/post", "text/plain", "channel=c", "; the content was not taken for a form, as its Content-Type is text/plain"},
		{"a form without the field", "/post", "application/x-www-form-urlencoded", "x=c", ""},
		{"no content", "/post", "", "", "; the request has no content"},
		{"a form for JSON", "/order", "application/x-www-form-urlencoded", "ref=c", "; the content is no JSON; its Content-Type is application/x-www-form-urlencoded"},
		{"JSON without the member", "/order", "application/x-www-form-urlencoded", "{}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := wire.Explain{Method: http.MethodPost, URL: "https://chat.test" + c.path, Body: wire.Text(c.body)}
			if c.kind != "" {
				e.Headers = wire.Header{"Content-Type": {c.kind}}
			}
			x := explainedBy(t, e)
			_, more, found := strings.Cut(x.Detail, "the rule "+c.path[1:]+" needs it to tell mutations apart")
			if x.Refused != "identity" || !found || more != c.want {
				t.Errorf("refused as %s: %q, want %q at its end", x.Refused, x.Detail, c.want)
			}
		})
	}
}
