package admin

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

func TestIdentityIsShownWhateverItHolds(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(identityOf(map[string]string{
		"number": "12345678901234567890", "text": `"a"`, "object": `{"b":1}`, "empty": "", "none": `no "JSON"`,
	}), json.Deterministic(true))
	want := `{"empty":"","none":"no \"JSON\"","number":12345678901234567890,"object":{"b":1},"text":"a"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestBodyReference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		stored ledger.Body
		want   wire.Missing
		size   int64
	}{
		{"no content is shown as such", ledger.Body{}, "", 0},
		{"content is named, not shown", ledger.Body{SHA256: "ab", Size: 2}, wire.MissingOmitted, 2},
		{"dropped content says so", ledger.Body{SHA256: "ab", Size: 2, Dropped: true}, wire.MissingDropped, 2},
	} {
		if got := bodyReference(c.stored); got.Missing != c.want || got.Size != c.size || got.SHA256 != c.stored.SHA256 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestABareRecordIsShown(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(mutationOf(&ledger.Mutation{}))
	if err != nil {
		t.Fatal(err)
	}
	var back wire.Mutation
	if err := json.Unmarshal(got, &back, json.RejectUnknownMembers(true)); err != nil {
		t.Errorf("%s: %v", got, err)
	}
	if back.Dispatches == nil || back.Observations == nil || back.Result != nil || back.Escalation != nil {
		t.Errorf("lists are lists, and what isn't there is absent: %s", got)
	}
}

// An outline tells that payloads differ and where, that the API was asked and what that
// came to, and no value of either.
func TestAnOutlineHoldsNoContents(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	m := &ledger.Mutation{
		Payload: ledger.Payload{
			Request: ledger.Request{Header: ledger.Header{"X-Note": {secret}}},
			Diff:    &ledger.Diff{Changes: []ledger.Change{{Place: "json.amount", Kind: "changed", Stored: secret, Asked: secret, Weight: "significant"}}},
		},
		Outcome: ledger.Outcome{
			Result:       &ledger.Result{Header: ledger.Header{"Set-Cookie": {secret}}, Trailer: ledger.Header{"X-Note": {secret}}},
			Verification: &ledger.Verification{Evidence: "GET /" + secret},
		},
		Asking: ledger.Asking{Observations: []ledger.Observation{{Seen: ledger.SeenAbsent, Reason: "nothing of it", Evidence: "GET /" + secret}}},
	}
	got, err := json.Marshal(outlineOf(m))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(got); strings.Contains(text, secret) || !strings.Contains(text, "json.amount") || !strings.Contains(text, "nothing of it") {
		t.Errorf("an outline is %s", text)
	}
	if shown := mutationOf(m).Result; shown.Trailers["X-Note"] == nil {
		t.Errorf("to others the result is %+v", shown)
	}
	if m.Diff.Changes[0].Asked != secret || m.Observations[0].Evidence == "" {
		t.Error("the record itself was changed")
	}
}

func TestEnvironOfAnAddressWithoutAPort(t *testing.T) {
	t.Parallel()
	env := environ(portless{}, door{portless{}.ProxyAddr(), "t"})
	if env["HTTPS_PROXY"] != "http://run:t@proxy" {
		t.Errorf("HTTPS_PROXY %s", env["HTTPS_PROXY"])
	}
	if _, ok := env["CLOUDSDK_PROXY_ADDRESS"]; ok {
		t.Error("gcloud is given half an address")
	}
}

// portless is a proxy behind a name alone.
type portless struct{}

func (portless) ProxyAddr() string  { return "proxy" }
func (portless) CAPEM() []byte      { return nil }
func (portless) CAFile() string     { return "" }
func (portless) BundleFile() string { return "" }

func (portless) OpenListener(context.Context, string) (string, error) { return "", nil }
func (portless) CloseListener(string)                                 {}
