package rules

import (
	"strings"
	"testing"
	"time"
)

// Settings are written for the rule that is in force. A stored version that they don't fit is
// loaded all the same: what was sent under it must be found, and asked about.
func TestSettingsForALaterVersionKeepNoStoredOneFromLoading(t *testing.T) {
	t.Parallel()
	long, short := 23*time.Hour, time.Minute
	const bounded = "bounds: {commit: 10m, lag: 1m, source: measured}"
	for name, c := range map[string]struct {
		stored   string
		settings Settings
		part     string // of the error that the same is in a file of now
		holds    func(*Connector, *Operation) bool
	}{
		"a verification that this one has no read for": {
			withOperation(), Settings{Overrides: map[string]Override{"make": {Verify: VerifyStrict}}}, "nothing says how the API is asked before a replay",
			func(_ *Connector, op *Operation) bool { return op.Verify == VerifyOff },
		},
		"a settle below what this one says of the API": {
			withOperation(bounded, "settle: 15m"), Settings{Overrides: map[string]Override{"make": {Settle: &short}}}, "does not cover a commit",
			func(_ *Connector, op *Operation) bool { return op.Settle == 15*time.Minute },
		},
		"a settle that this one was loaded with, and is set no more": {
			withOperation(bounded), Settings{}, "does not cover a commit",
			func(_ *Connector, op *Operation) bool { return op.Settle > 11*time.Minute },
		},
		"a settle as long as the window of this one": {
			withOperation("native_key: {header: Idempotency-Key, window: 24h}", "reconcile: [{resend: {}}]"),
			Settings{Overrides: map[string]Override{"make": {Settle: &long}}}, "too short for a resend",
			func(_ *Connector, op *Operation) bool { return op.Settle == long && len(op.Strategies) == 1 },
		},
		"sending again what this one keeps secret": {
			withOperation("secret: [json.pin]"), Settings{Overrides: map[string]Override{"make": {OnAbsent: OnAbsentRedispatch}}}, "redispatch needs the whole request",
			func(_ *Connector, op *Operation) bool { return op.OnAbsent == OnAbsentFail },
		},
		"sending again what this one sends in steps": {
			withOperation("send: [{prepare: draft, post: /drafts, keep: {draft: response.json.id}}, {commit: , post: /send, json: {id: {cel: mutation.kept.draft}}}]"),
			Settings{Overrides: map[string]Override{"make": {OnAbsent: OnAbsentRedispatch}}}, "what is sent in steps is not sent again by itself",
			func(_ *Connector, op *Operation) bool { return op.OnAbsent == OnAbsentFail },
		},
		"hosts without the variable that this one reads": {
			strings.Replace(withOperation("identity: {shop: host.shop, name: json.name}"), "hosts: [api.test]", `hosts: ["{shop}.test"]`, 1),
			Settings{Hosts: []string{"acme.test"}}, "reads host.shop, but no pattern has {shop}",
			func(c *Connector, op *Operation) bool {
				d, err := op.Under(op, OwnHosts, request(t, "POST https://acme.test/things", `{"name":"a"}`), false)
				return err == nil && d.Derived != nil && identityOf(d.Derived) == `{"name":"a","shop":"acme"}` && c.Hosts[0] == "acme.test"
			},
		},
		"hosts without that variable, of a record of before they were noted": {
			strings.Replace(withOperation("identity: {shop: host.shop, name: json.name}"), "hosts: [api.test]", `hosts: ["{shop}.test"]`, 1),
			Settings{Hosts: []string{"acme.test"}}, "reads host.shop, but no pattern has {shop}",
			func(_ *Connector, op *Operation) bool {
				req := request(t, "POST https://acme.test/things", `{"name":"a"}`)
				_, err := op.Under(op, "", req, false)
				return err != nil // Whether a record is of it can't be told.
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.settings.Connector = "test"
			set, findings := Load([]File{{Name: "now.yaml", Data: []byte(c.stored)}}, []Settings{c.settings}, Defaults{})
			if set != nil || !strings.Contains(findings.Error(), c.part) {
				t.Errorf("as a file of now: %v, want %q", findings, c.part)
			}
			connector, findings := LoadPinned([]byte(c.stored), []Settings{c.settings}, Defaults{})
			if connector == nil {
				t.Fatalf("as a stored version: %v", findings)
			}
			if op := connector.Operation("make"); !c.holds(connector, op) {
				t.Errorf("in force: settle %v, on_absent %s, verify %s, hosts %v", op.Settle, op.OnAbsent, op.Verify, connector.Hosts)
			}
		})
	}
}
