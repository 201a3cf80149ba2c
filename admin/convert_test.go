package admin

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
			Request: ledger.Request{URL: "https://api.test/pay?api_key=" + secret, Header: ledger.Header{"X-Note": {secret}}},
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
	if text := string(got); strings.Contains(text, secret) || !strings.Contains(text, `"https://api.test/pay"`) || !strings.Contains(text, "json.amount") || !strings.Contains(text, "nothing of it") {
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
	env := environ(portless{}, access{portless{}.ProxyAddr(), "t"})
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

// What the API shows of a record and the record itself fit, member by member. A member that
// nothing is taken for is made by hand.
func TestMembersAreTakenFromRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		to, from any
		byHand   []string
	}{
		{wire.Mutation{}, ledger.Mutation{}, []string{
			"Events", "EventsLeftOut", "Actions", "CanVerify", "CannotVerify", "ManualCheck", "Blocks", "ResumeHint",
		}},
		{wire.Dispatch{}, ledger.Dispatch{}, nil},
		{wire.Observation{}, ledger.Observation{}, nil},
		{wire.EscalationRef{}, ledger.Escalation{}, nil},
		{wire.Verification{}, ledger.Verification{}, nil},
		{wire.Diff{}, ledger.Diff{}, nil},
		{wire.Change{}, ledger.Change{}, nil},
		{wire.Request{}, ledger.Request{}, nil},
		{wire.Result{}, ledger.Result{}, nil},
		{wire.Undo{}, ledger.Undo{}, nil},
		{wire.Event{}, ledger.Event{}, nil},
		{wire.Action{}, ledger.Action{}, nil},
		{wire.Gap{}, ledger.Gap{}, nil},
		{wire.ConfirmedScope{}, ledger.Confirmed{}, nil},
		{wire.Run{}, ledger.Run{}, []string{"Retry", "RetryAfter"}},
		{wire.Item{}, ledger.Item{}, []string{"Runs", "Mutations", "Attempts", "Actions"}},
		{wire.ItemChange{}, ledger.ItemChange{}, nil},
		{wire.ItemRun{}, ledger.Run{}, nil},
		{wire.ItemMutation{}, ledger.Mutation{}, []string{"Next"}},
		{wire.MutationRef{}, ledger.Mutation{}, nil},
		{wire.Touched{}, ledger.Mutation{}, []string{"ItemID", "ItemState", "Mutation", "Dispatches", "Status"}},
		{wire.Obligation{}, ledger.Mutation{}, []string{"Standing", "Mutation", "Object", "Order", "Auto", "Request", "Sent"}},
	} {
		from, to := reflect.TypeOf(c.from), reflect.New(reflect.TypeOf(c.to)).Elem()
		var byHand []string
		for _, f := range reflect.VisibleFields(to.Type()) {
			if source, ok := from.FieldByName(cmp.Or(f.Tag.Get("ledger"), f.Name)); f.Anonymous || ok && source.IsExported() {
				continue
			}
			byHand = append(byHand, f.Name)
		}
		if !slices.Equal(byHand, c.byHand) {
			t.Errorf("%s: made by hand %v, want %v", to.Type(), byHand, c.byHand)
		}
		record := reflect.New(from).Elem()
		filled(record)
		take(to, record)
		for _, f := range reflect.VisibleFields(to.Type()) {
			if !slices.Contains(byHand, f.Name) && to.FieldByIndex(f.Index).IsZero() {
				t.Errorf("%s.%s stays empty", to.Type(), f.Name)
			}
		}
	}
}

// filled sets every field that a record of the ledger has.
func filled(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Array:
		filled(v.Index(0))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				filled(v.Field(i))
			}
		}
	}
}
