package app

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

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
	return explainedUnder(t, askingRule, e)
}

func explainedUnder(t *testing.T, rule string, e wire.Explain) Explained {
	t.Helper()
	set, findings := rules.Load([]rules.File{{Name: "chat.yaml", Data: []byte(rule)}}, nil, RuleDefaults(config.Default()))
	if set == nil {
		t.Fatal(findings)
	}
	raw, err := RawRequest(e)
	if err != nil {
		t.Fatal(err)
	}
	return ExplainRequest(set, raw, ScopeOf(e, time.Time{}))
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

// Who writes a rule sees which parts of a request the ledger would keep in clear.
func TestWhatWouldBeKeptIsExplained(t *testing.T) {
	t.Parallel()
	rule := strings.Replace(askingRule, "    reconcile:", "    secret: [query.pin, form.token]\n    reconcile:", 1)
	asked := form("channel=c&token=t", "T1")
	asked.URL += "?pin=1&note=x"
	asked.Headers["Authorization"], asked.Headers["X-Note"] = []string{"Bearer t"}, []string{"n"}
	x := explainedUnder(t, rule, asked)
	if kept := strings.Join(x.Kept, ", "); kept != "path, query note, header Content-Type, header X-Note" {
		t.Errorf("kept: %s", kept)
	}
	if masked := strings.Join(x.Masked, ", "); masked != "query pin, header Authorization, body" {
		t.Errorf("masked: %s", masked)
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

// What the rule writes into a request can be refused, although all that is known of it was derived.
func TestARequestThatCantBeMadeIsExplainedAsRefused(t *testing.T) {
	t.Parallel()
	marked := strings.Replace(askingRule, "identity: {ref: json.ref}", "identity: none\n    marker: {json: keep_id}", 1)
	refusing := strings.Replace(askingRule, "{header: Idempotency-Key}", "{header: Idempotency-Key, when_present: refuse}", 1)
	keeping := strings.Replace(askingRule, "{header: Idempotency-Key}", "{header: Idempotency-Key, when_present: keep_first}", 1)
	with := func(e wire.Explain, name, value string) wire.Explain {
		headers := wire.Header{name: {value}}
		maps.Copy(headers, e.Headers)
		e.Headers = headers
		return e
	}
	order := func(body, account string) wire.Explain {
		return with(wire.Explain{Method: http.MethodPost, URL: "https://chat.test/order", Body: wire.Text(body), Account: account},
			"Content-Type", "application/json")
	}
	for _, c := range []struct {
		name, rule      string
		request         wire.Explain
		refused, detail string
	}{
		{"no content to write the marker into", marked, order("", "T1"), "identity", "the body is no JSON, but the rule writes json.keep_id into it"},
		{"nor where the account is asked for", marked, order("", ""), "identity", "the body is no JSON, but the rule writes json.keep_id into it"},
		{"a digest of what is changed", marked, with(order("{}", "T1"), "Content-Digest", "sha-256=:x:"), "ambiguous-request", "says a digest of its body"},
		{"a key that isn't taken", refusing, with(form("channel=c", "T1"), "Idempotency-Key", "own"), "ambiguous-request", "brings its own"},
		{"content that takes it", marked, order("{}", "T1"), "", ""},
		{"no key of its own", refusing, form("channel=c", "T1"), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := explainedUnder(t, c.rule, c.request)
			if x.Refused != c.refused || !strings.Contains(x.Detail, c.detail) || (x.Effect == "deny") != (c.refused != "") {
				t.Errorf("it is %s, refused as %q: %q; want %q: %q", x.Effect, x.Refused, x.Detail, c.refused, c.detail)
			}
			if (x.Key != "") != (c.request.Account != "") {
				t.Errorf("its key is %q", x.Key)
			}
		})
	}
	if x := explainedUnder(t, keeping, with(form("channel=c", "T1"), "Idempotency-Key", "own")); x.VendorKey != "own" {
		t.Errorf("the key that is kept is explained as %q", x.VendorKey)
	}
	if x := explainedBy(t, with(form("channel=c", "T1"), "Idempotency-Key", "own")); x.VendorKey == "own" || x.VendorKey == "" {
		t.Errorf("the key that is replaced is explained as %q", x.VendorKey)
	}
}
