package bank_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fakes/apitest"
	"keep-proxy/internal/fakes/bank"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// order is the JSON of a transfer of 12.50 EUR from ann to bob.
func order(reference string) string {
	return fmt.Sprintf(`{"from":"ann","to":"bob","amount":1250,"currency":"EUR","reference":%q,"metadata":{"keep_id":"m1"}}`, reference)
}

func TestTransferIsBookedAndShown(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, bank.New(bank.Defaults()))
	reply := b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(201, `"status":"booked"`)
	var got bank.Transfer
	reply.Into(&got)
	if got.ID != "tr_000001" || got.Amount != 1250 || got.Metadata["keep_id"] != "m1" || got.IdempotencyKey != "k1" ||
		got.CreatedAt != apitest.Epoch.Format(time.RFC3339Nano) {
		t.Errorf("transfer %+v", got)
	}
	if got := b.Do("GET", reply.Header.Get("Location"), ""); got.Body != reply.Body {
		t.Errorf("Location shows %s, want %s", got.Body, reply.Body)
	}
	tally := b.Counted()
	if tally.Effects("transfer:R-1") != 1 || tally.Sends("transfer:R-1") != 1 {
		t.Errorf("%d effects, %d sends", tally.Effects("transfer:R-1"), tally.Sends("transfer:R-1"))
	}
}

func TestTransferIsRefused(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, bank.New(bank.Defaults()))
	tests := []struct {
		name, body string
		status     int
		code       string
	}{
		{"no JSON", `{`, 400, "invalid_json"},
		{"an amount with a fraction", `{"from":"a","to":"b","amount":1.5,"currency":"EUR","reference":"r"}`, 400, "invalid_json"},
		{"no amount", `{"from":"a","to":"b","currency":"EUR","reference":"r"}`, 422, "invalid_transfer"},
		{"a negative amount", `{"from":"a","to":"b","amount":-1,"currency":"EUR","reference":"r"}`, 422, "invalid_transfer"},
		{"one account", `{"from":"a","to":"a","amount":1,"currency":"EUR","reference":"r"}`, 422, "two accounts"},
		{"a currency in small letters", `{"from":"a","to":"b","amount":1,"currency":"eur","reference":"r"}`, 422, "currency"},
		{"no reference", `{"from":"a","to":"b","amount":1,"currency":"EUR"}`, 422, "reference"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.Do("POST", "/transfers", tt.body).Is(tt.status, tt.code)
		})
	}
	b.Do("POST", "/transfers", order("r"), "Idempotency-Key", strings.Repeat("k", 256)).Is(400, "invalid_key")
	b.Do("PUT", "/transfers", order("r")).Is(405, "")
	b.Do("POST", "/nowhere", "{}").Is(404, "no_endpoint")
	if n := len(b.Counted().Of(oracle.KindEffect)); n != 0 {
		t.Errorf("%d effects of refused requests", n)
	}
}

func TestNativeKey(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, bank.New(bank.Defaults()))
	first := b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(201, "")
	b.Advance(23 * time.Hour)
	again := b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(201, "")
	if again.Body != first.Body || again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Location") != first.Header.Get("Location") {
		t.Errorf("the repeat got %+v, want the first answer with Idempotent-Replayed", again)
	}
	if first.Header.Get("Idempotent-Replayed") != "" {
		t.Error("the first answer says that it is a replay")
	}
	b.Do("POST", "/transfers", order("R-2"), "Idempotency-Key", "k1").Is(422, "key_reused")
	if n := b.Counted().Effects("transfer:R-1"); n != 1 {
		t.Errorf("%d effects inside the window, want 1", n)
	}
	b.Advance(time.Hour)
	b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(201, "tr_000002")
	if n := b.Counted().Effects("transfer:R-1"); n != 2 {
		t.Errorf("%d effects once the window is over, want 2", n)
	}
}

func TestKeyIsInUseWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, bank.New(bank.Defaults()))
	b.ArmNamed("hang-inside")
	first := make(chan apitest.Reply, 1)
	go func() {
		reply, err := b.Try("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1")
		if err != nil {
			t.Error(err)
		}
		first <- reply
	}()
	b.Await(oracle.KindHeld, 1)
	b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(409, "key_in_use")
	b.Release(script.GateHang)
	reply := <-first
	reply.Is(201, "tr_000001")
	b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(201, "tr_000001")
	if n := b.Counted().Effects("transfer:R-1"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

func TestWhatIsKeptOfFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fault   string
		first, second int
		effects       int
	}{
		{"a gateway's 500 after the booking", "commit-500", 500, 201, 1},
		{"the bank's own 500 after the booking", "commit-own-500", 500, 500, 1},
		{"the bank's own 500 without it", "own-500", 500, 201, 1},
		{"a gateway that retries inside", "commit-twice", 201, 201, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := apitest.Start(t, bank.New(bank.Defaults()))
			b.ArmNamed(tt.fault)
			b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(tt.first, "")
			b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(tt.second, "")
			if n := b.Counted().Effects("transfer:R-1"); n != tt.effects {
				t.Errorf("%d effects, want %d", n, tt.effects)
			}
		})
	}
}

func TestBankWithoutKeys(t *testing.T) {
	t.Parallel()
	api := bank.New(bank.Defaults())
	b := apitest.Start(t, api)
	if err := api.Adjust([]byte(`{"native_keys":false}`)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"tr_000001", "tr_000002"} {
		b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(201, id)
	}
	if n := b.Counted().Effects("transfer:R-1"); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, bank.New(bank.Defaults()))
	for i := range 5 {
		b.Do("POST", "/transfers", order(fmt.Sprintf("R-%d", i%2))).Is(201, "")
	}
	var seen []string
	cursor := ""
	for pages := 1; ; pages++ {
		var page bank.Page
		b.Do("GET", "/transfers?reference=R-0&limit=2&cursor="+cursor, "").Is(200, "").Into(&page)
		for _, item := range page.Items {
			seen = append(seen, item.ID)
		}
		if !page.HasMore {
			if page.NextCursor != "" || pages != 2 {
				t.Errorf("page %d is the last, with cursor %q", pages, page.NextCursor)
			}
			break
		}
		cursor = page.NextCursor
	}
	if got := strings.Join(seen, " "); got != "tr_000001 tr_000003 tr_000005" {
		t.Errorf("listed %s", got)
	}
	b.Do("GET", "/transfers?reference=none", "").Is(200, `{"items":[],"has_more":false,"next_cursor":""}`)
	b.Do("GET", "/transfers?from=bob", "").Is(200, `"items":[]`)
	b.Do("GET", "/transfers?limit=0", "").Is(400, "invalid_limit")
	b.Do("GET", "/transfers?cursor=tr_9", "").Is(400, "invalid_cursor")
	b.Do("GET", "/transfers/tr_9", "").Is(404, "no_transfer")
}

func TestListingLagsWhenToldTo(t *testing.T) {
	t.Parallel()
	api := bank.New(bank.Defaults())
	b := apitest.Start(t, api)
	if err := api.Adjust([]byte(`{"list_lag":"30s"}`)); err != nil {
		t.Fatal(err)
	}
	b.Do("POST", "/transfers", order("R-1")).Is(201, "")
	b.Advance(30*time.Second - 1)
	b.Do("GET", "/transfers?reference=R-1", "").Is(200, `"items":[]`)
	b.Do("GET", "/transfers/tr_000001", "").Is(200, "R-1")
	b.Advance(1)
	b.Do("GET", "/transfers?reference=R-1", "").Is(200, "tr_000001")
}

func TestBalancesAndFunds(t *testing.T) {
	t.Parallel()
	api := bank.New(bank.Defaults())
	b := apitest.Start(t, api)
	if err := api.Adjust([]byte(`{"accounts":{"ann":2000}}`)); err != nil {
		t.Fatal(err)
	}
	b.Do("POST", "/transfers", order("R-1")).Is(201, "")
	b.Do("POST", "/transfers", order("R-2")).Is(402, "insufficient_funds")
	b.Do("GET", "/balance?account=ann", "").Is(200, `{"account":"ann","currency":"EUR","balance":750}`)
	b.Do("GET", "/balance?account=carol", "").Is(404, "no_account")
	b.Do("GET", "/balance", "").Is(200, `{"items":[{"account":"ann","currency":"EUR","balance":750},{"account":"bob","currency":"EUR","balance":1250}]}`)
	if n := b.Counted().Effects("transfer:R-2"); n != 0 {
		t.Errorf("%d effects without funds", n)
	}
}

func TestNoticesCannotBeAskedFor(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, bank.New(bank.Defaults()))
	body := `{"to":"ann","text":"hello","reference":"N-1"}`
	b.Do("POST", "/notices", body, "Idempotency-Key", "k").Is(202, `{"id":"no_000001","status":"queued"}`)
	b.Do("POST", "/notices", body, "Idempotency-Key", "k").Is(202, "no_000002")
	if r := b.Do("GET", "/notices", "").Is(405, ""); r.Header.Get("Allow") != "POST" {
		t.Errorf("Allow: %q", r.Header.Get("Allow"))
	}
	b.Do("GET", "/notices/no_000001", "").Is(404, "")
	b.Do("POST", "/notices", `{"to":"ann"}`).Is(422, "invalid_notice")
	b.Do("POST", "/notices", `[]`).Is(400, "invalid_json")
	if n := b.Counted().Effects("notice:N-1"); n != 2 {
		t.Errorf("%d effects, want 2: nothing dedupes notices", n)
	}
}

func TestBooksSurviveARestart(t *testing.T) {
	t.Parallel()
	first := bank.New(bank.Defaults())
	b := apitest.Start(t, first)
	want := b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(201, "")
	b.Do("POST", "/notices", `{"to":"ann","text":"hello","reference":"N-1"}`).Is(202, "")
	b.End()
	second := bank.New(bank.Defaults())
	b2 := apitest.Continue(t, second, b.LogPath())
	if second.Books() != first.Books() {
		t.Errorf("books:\n%s\nwant:\n%s", second.Books(), first.Books())
	}
	again := b2.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k1").Is(201, "")
	if again.Body != want.Body || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the key was forgotten: %+v", again)
	}
	b2.Do("POST", "/transfers", order("R-2")).Is(201, "tr_000002")
}

func TestBooks(t *testing.T) {
	t.Parallel()
	api := bank.New(bank.Settings{Accounts: map[string]int64{"ann": 10005}})
	b := apitest.Start(t, api)
	b.Do("POST", "/transfers", order("R-1")).Is(201, "")
	b.Do("POST", "/transfers", `{"from":"bob","to":"cy","amount":1300,"currency":"EUR","reference":"R-2"}`).Is(201, "")
	b.Do("POST", "/notices", `{"to":"ann","text":"hello","reference":"N-1"}`).Is(202, "")
	want := `TRANSFER   FROM  TO   AMOUNT     REFERENCE
tr_000001  ann   bob  12.50 EUR  R-1
tr_000002  bob   cy   13.00 EUR  R-2

ACCOUNT  BALANCE
ann      87.55 EUR
bob      -0.50 EUR
cy       13.00 EUR

NOTICE     TO   REFERENCE  TEXT
no_000001  ann  N-1        hello
`
	if got := api.Books(); got != want {
		t.Errorf("books:\n%s\nwant:\n%s", got, want)
	}
}

func TestAdjustRefuses(t *testing.T) {
	t.Parallel()
	api := bank.New(bank.Defaults())
	for _, settings := range []string{`{"natve_keys":false}`, `{"list_lag":"-1s"}`, `{`, `{"native_keys":false,"key_window":7}`} {
		if err := api.Adjust([]byte(settings)); err == nil {
			t.Errorf("%s was taken", settings)
		}
	}
	b := apitest.Start(t, api)
	b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k").Is(201, "")
	b.Do("POST", "/transfers", order("R-1"), "Idempotency-Key", "k").Is(201, "tr_000001")
}

func TestTransferIsTakenBack(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, bank.New(bank.Defaults()))
	for _, reference := range []string{"R-1", "R-2"} {
		b.Do("POST", "/transfers", order(reference)).Is(201, "")
	}
	b.Do("DELETE", "/transfers/tr_000002", "").Is(204, "")
	b.Do("DELETE", "/transfers/tr_000002", "").Is(404, "no_transfer")
	b.Do("GET", "/transfers/tr_000002", "").Is(404, "no_transfer")
	b.Do("POST", "/transfers/tr_000001/reversals", "{}").Is(201, "reversed")
	b.Do("POST", "/transfers/tr_000001/reversals", "{}").Is(201, "reversed")
	b.Do("GET", "/transfers/tr_000001", "").Is(200, `"reversals":2`)
	b.Do("GET", "/balance?account=ann", "").Is(200, `"balance":1250`)
	b.Do("POST", "/transfers", order("R-3")).Is(201, "tr_000003")
	tally := b.Counted()
	if c, r := tally.Effects("cancel:tr_000002"), tally.Effects("reversal:tr_000001"); c != 1 || r != 2 {
		t.Errorf("%d cancellations, %d reversals", c, r)
	}
}
