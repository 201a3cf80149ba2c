package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// askingRules are the test rules of a connector that asks for the account.
func askingRules() string {
	return strings.Replace(testRules, "reads: safe-methods\n", "reads: safe-methods\naccount: {get: /me, value: response.json.id}\n", 1)
}

// A stored version of the rule that asked is asked again, so that what was made under it
// is found; where it can't tell, nothing is sent.
func TestAStoredVersionOfTheRuleIsAskedForTheAccount(t *testing.T) {
	t.Parallel()
	account, asked := atomic.Pointer[string]{}, atomic.Int64{}
	ann := "ann"
	account.Store(&ann)
	accounts := func(context.Context, *rules.Connector, *rules.Request) (string, error) {
		asked.Add(1)
		if name := account.Load(); name != nil {
			return *name, nil
		}
		return "", errors.New("it was answered 401")
	}
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusCreated) },
		func(c *Config) { c.Accounts = accounts })
	w.use(askingRules())
	pay := func() got {
		return w.open("a", func(o *ledger.OpenRun) { o.Takeover = true }).post("/pay", `{"to":"bob"}`)
	}
	wantAnswer(t, pay(), http.StatusCreated, "", false)
	if m := w.mutation("a"); m.Account != "ann" || asked.Load() != 1 {
		t.Errorf("account %q, asked %d times", m.Account, asked.Load())
	}
	w.use(testRules)
	wantAnswer(t, pay(), http.StatusCreated, "", true)
	account.Store(nil)
	wantProblem(t, pay(), "ambiguous-record", http.StatusForbidden, "can't be read")
	w.use(askingRules())
	wantProblem(t, pay(), "account-unknown", http.StatusBadGateway, "it was answered 401")
	w.wantSends("/pay", 1)
}

func TestNobodyToAskIsNoAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	w.use(askingRules())
	wantProblem(t, w.open("a").post("/pay", `{"to":"bob"}`), "account-unknown", http.StatusBadGateway, "nothing was sent")
	w.wantSends("/pay", 0)
}

// rotating are credentials that are other ones each time.
type rotating struct{ asked atomic.Int64 }

func (r *rotating) Always(string, string, string) (name, value string, ok bool, err error) {
	return "Authorization", fmt.Sprintf("Bearer %d", r.asked.Add(1)), true, nil
}

// The account that the key names is that of the credential which the request goes out
// with, also if another one is configured meanwhile: else a re-run would make it again.
func TestARequestIsSentWithTheCredentialWhoseAccountItNames(t *testing.T) {
	t.Parallel()
	var sent atomic.Pointer[string]
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			sent.Store(new(r.Header.Get("Authorization")))
		}
		rw.WriteHeader(http.StatusCreated)
	}, func(c *Config) {
		c.Credentials = &rotating{}
		c.Accounts = func(_ context.Context, _ *rules.Connector, req *rules.Request) (string, error) {
			return req.Header.Get("Authorization"), nil
		}
	})
	w.use(askingRules())
	wantAnswer(t, w.open("a").post("/pay", `{"to":"bob"}`), http.StatusCreated, "", false)
	if got := *sent.Load(); got != w.mutation("a").Account {
		t.Errorf("sent with %q for the account of %q", got, w.mutation("a").Account)
	}
}

// settable is a credential that somebody changes.
type settable struct{ is atomic.Pointer[string] }

func (s *settable) Always(string, string, string) (name, value string, ok bool, err error) {
	return "Authorization", *s.is.Load(), true, nil
}

// Nor is a record of one account, found under a version of the rule that asked, sent with
// the credential of another one.
func TestARecordOfAnEarlierVersionIsSentWithTheCredentialThatFoundIt(t *testing.T) {
	t.Parallel()
	var sent atomic.Pointer[string]
	var asked atomic.Int64
	credentials := &settable{}
	credentials.is.Store(new("ann's"))
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		sent.Store(new(r.Header.Get("Authorization")))
		rw.WriteHeader(http.StatusBadRequest)
	}, func(c *Config) {
		c.Credentials = credentials
		c.Accounts = func(_ context.Context, _ *rules.Connector, req *rules.Request) (string, error) {
			if asked.Add(1) == 2 {
				credentials.is.Store(new("bob's"))
			}
			return req.Header.Get("Authorization"), nil
		}
	})
	w.use(askingRules())
	wantAnswer(t, w.open("a").post("/pay", payX), http.StatusBadRequest, "", false)
	w.use(testRules)
	wantAnswer(t, w.open("a").post("/pay", payX), http.StatusBadRequest, "", false)
	w.wantSends("/pay", 2)
	w.mutation("a")
	if *sent.Load() != "ann's" || asked.Load() != 2 {
		t.Errorf("ann's record was sent with the credential that is %s, asked %d times", *sent.Load(), asked.Load())
	}
}
