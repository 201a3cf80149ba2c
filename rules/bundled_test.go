package rules_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/rules"
)

// bundled reads the connector files that come with the program.
func bundled(tb testing.TB) []rules.File {
	tb.Helper()
	names, err := filepath.Glob("../connectors/*.yaml")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no bundled connectors: %v", err)
	}
	var files []rules.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, rules.File{Name: filepath.Base(name), Data: data})
	}
	return files
}

func TestBundledConnectorsLoadAndTheirCasesHold(t *testing.T) {
	t.Parallel()
	set, findings := rules.Load(bundled(t), nil, rules.Defaults{})
	if len(findings) > 0 {
		t.Fatalf("findings:\n%v", findings)
	}
	for _, c := range set.Connectors() {
		if c.Cases() < 3 {
			t.Errorf("%s has %d cases; each bundled connector shows how it works by at least 3", c.Name, c.Cases())
		}
	}
	if failed := set.RunCases(); len(failed) > 0 {
		t.Fatalf("cases:\n%v", failed)
	}
}

// Stripe takes a payment intent or its charge for the payment, which are two identities: a re-run that
// names the other one is asked about, and not sent as a second refund.
func TestABundledRefundRefusesDrift(t *testing.T) {
	t.Parallel()
	set, findings := rules.Load(bundled(t), nil, rules.Defaults{})
	if set == nil {
		t.Fatalf("findings:\n%v", findings)
	}
	if op := set.Connector("stripe").Operation("refund.create"); op.Drift != rules.DriftRefuse {
		t.Errorf("drift: %s", op.Drift)
	}
}

// GitHub's rate limits say until when in fields of their own, where they have no Retry-After.
func TestWhenGitHubWantsToBeAskedAgain(t *testing.T) {
	t.Parallel()
	set, findings := rules.Load(bundled(t), nil, rules.Defaults{})
	if set == nil {
		t.Fatalf("findings:\n%v", findings)
	}
	op := set.Connector("github").Operation("issue.create")
	req, refusal := rules.Rebuild("POST", "https://api.github.com/repos/octo/hello/issues", http.Header{"Content-Type": {"application/json"}}, []byte(`{"title":"t"}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	usedUp := map[string][]string{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1767323045"}}
	for name, c := range map[string]struct {
		status int
		header map[string][]string
		body   string
		wait   time.Duration
		until  time.Time
	}{
		"a used up limit, 403":           {403, usedUp, `{}`, 0, time.Unix(1767323045, 0)},
		"a used up limit, 429":           {429, usedUp, `{}`, 0, time.Unix(1767323045, 0)},
		"one that also says Retry-After": {403, map[string][]string{"X-Ratelimit-Remaining": {"0"}, "Retry-After": {"60"}}, `{}`, 0, time.Time{}},
		"a secondary one, 403":           {403, nil, `{"message":"You have exceeded a secondary rate limit."}`, time.Minute, time.Time{}},
		"a secondary one, 429":           {429, nil, `{`, time.Minute, time.Time{}},
	} {
		got := op.Judge(req, "", rules.Mutation{}, &rules.Response{Status: c.status, Header: c.header, Body: []byte(c.body), Complete: true})
		if got.Class != verdict.Transient || got.Wait != c.wait || !got.Until.Equal(c.until) {
			t.Errorf("%s: %v, wait %v, until %v", name, got.Class, got.Wait, got.Until)
		}
	}
}

// www.googleapis.com has more APIs than are bundled. Theirs is what the configuration says of hosts without rules.
func TestDriveIsNobodysBesideCalendar(t *testing.T) {
	t.Parallel()
	set, findings := rules.Load(bundled(t), nil, rules.Defaults{})
	if set == nil {
		t.Fatalf("findings:\n%v", findings)
	}
	for target, owner := range map[string]string{
		"/drive/v3/files": "", "/upload/drive/v3/files?uploadType=media": "", "/batch/drive/v3": "",
		"/calendar/v3/calendars": "google-calendar", "/batch/calendar/v3": "google-calendar",
	} {
		req, refusal := set.Normalise(rules.Raw{Method: "POST", Scheme: "https", Authority: "www.googleapis.com", Target: target, Header: http.Header{}})
		if refusal != nil {
			t.Fatal(refusal)
		}
		m := set.Match(req)
		if m.Connector != set.Connector(owner) || m.Unmatched != (owner == "") || m.Unmatched != (m.Refusal == nil) {
			t.Errorf("%s: %+v", target, m)
		}
	}
	if !set.ConnectorHost("www.googleapis.com:443") {
		t.Error("what goes there would not be looked into")
	}
}

// Mails go out as drafts or without them. A mail that was recorded in one way is found in the other.
func TestAMailIsFoundWhicheverWayItIsSent(t *testing.T) {
	t.Parallel()
	send := func(direct string) *rules.Connector {
		set, findings := rules.Load(bundled(t), []rules.Settings{{Connector: "gmail", Parameters: map[string]rules.Given{"direct": {Texts: []string{direct}}, "account": {Texts: []string{"a@x.test"}}}}}, rules.Defaults{})
		if set == nil {
			t.Fatalf("findings:\n%v", findings)
		}
		return set.Connector("gmail")
	}
	drafts, direct := send("false"), send("true")
	for _, c := range []struct{ then, now *rules.Operation }{
		{drafts.Operation("message.send"), direct.Operation("message.sendDirect")},
		{direct.Operation("message.sendDirect"), drafts.Operation("message.send")},
	} {
		req, refusal := rules.Rebuild("POST", "https://gmail.googleapis.com/gmail/v1/users/me/messages/send",
			http.Header{"Content-Type": {"application/json"}}, []byte(`{"raw":"VG86IGJvYkBleGFtcGxlLm9yZwpTdWJqZWN0OiBIaSB0aGVyZQoKaGVsbG8"}`))
		if refusal != nil {
			t.Fatal(refusal)
		}
		found, err := c.now.Under(c.then, rules.OwnHosts, req, false)
		if err != nil || found.Derived == nil || found.Unsure != "" {
			t.Errorf("%s: %+v, %v", c.now.Name, found, err)
		}
	}
}

// What is known of a connector before it is compiled stands before operations in its file.
func TestHeadsOfBundledConnectorsAreThoseCompiled(t *testing.T) {
	t.Parallel()
	files := bundled(t)
	whole, _ := rules.Load(files, nil, rules.Defaults{})
	for i := range files {
		files[i].Late, files[i].Bundled = true, files[i].Name
	}
	late, findings := rules.Load(files, nil, rules.Defaults{})
	if late == nil || len(late.Compiled()) > 0 {
		t.Fatalf("some were compiled at once, or %v", findings)
	}
	shown := func(h rules.Head) string { return fmt.Sprint(h.Name, h.Was, h.Version, h.Hash, h.Hosts, h.Paths) }
	for i, c := range whole.Heads() {
		if got := late.Heads()[i]; shown(got) != shown(c) {
			t.Errorf("%s, compiled %s", shown(got), shown(c))
		}
	}
}
