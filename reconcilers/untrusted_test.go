package reconcilers

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"keep-proxy/internal/clock"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// Who asks for the account learns why the API wasn't reached: a certificate isn't trusted later either.
func TestAnUnreachedAccountSaysWhy(t *testing.T) {
	t.Parallel()
	text := strings.Replace(ruleText, "account: header[?'x-account'].orValue('')", "account: {get: /me, value: response.json.id}", 1)
	text = strings.Replace(strings.Replace(text, `"%s"`, `"api.test"`, 1), "%s", viaNone, 1)
	set, findings := rules.Load([]rules.File{{Name: "things.yaml", Data: []byte(text)}}, nil, rules.Defaults{})
	if findings.Failed() {
		t.Fatal(findings.Error())
	}
	req, refusal := rules.Rebuild("POST", "https://api.test/things", nil, []byte(`{"reference":"a"}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	untrusted := &upstream.Error{Class: upstream.ErrorCertificate, Text: "nobody vouches for it"}
	s := upstream.New(upstream.Config{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, untrusted }})
	r := &Reconciler{wire: wire{sender: s, clock: clock.System()}, clock: clock.System()}
	_, err := r.Account(t.Context(), set.Match(req).Connector, req)
	if got, ok := errors.AsType[*upstream.Error](err); !ok || *got != *untrusted || !errors.Is(err, errUnreached) {
		t.Errorf("got %v", err)
	}
}
