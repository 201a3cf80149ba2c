package reconcilers

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

func TestAccountsAreRememberedForTheirTimeAndInBounds(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	a := &accounts{clock: c}
	key := func(n int) [sha256.Size]byte { return sha256.Sum256(fmt.Append(nil, n)) }
	if _, known := a.of(key(0)); known {
		t.Error("something is known of nothing")
	}
	a.remember(key(0), "ann", c.Boot(), time.Minute)
	if name, known := a.of(key(0)); !known || name != "ann" {
		t.Errorf("%q, %v", name, known)
	}
	c.Advance(time.Minute)
	if _, known := a.of(key(0)); known {
		t.Error("it is known after its time")
	}
	for n := range 3 * maxAccounts {
		a.remember(key(n), "bob", c.Boot(), time.Minute)
	}
	if len(a.known) > maxAccounts {
		t.Errorf("%d are remembered", len(a.known))
	}
}

// Whose data it is may depend on all that is asked with, and most of all on the credentials.
func TestAnAccountIsThatOfWhoAsksHow(t *testing.T) {
	t.Parallel()
	ask := func(change func(*rules.Connector, *rules.Ask)) [sha256.Size]byte {
		c := &rules.Connector{Head: rules.Head{Hash: "h"}}
		a := &rules.Ask{Scheme: "https", Authority: "api.test", Target: "/me", Header: http.Header{"Authorization": {"ann"}, "X-Team": {"a", "b"}}}
		change(c, a)
		return askKey(c, a)
	}
	same := ask(func(*rules.Connector, *rules.Ask) {})
	if same != ask(func(*rules.Connector, *rules.Ask) {}) {
		t.Error("the same is asked twice")
	}
	for name, change := range map[string]func(*rules.Connector, *rules.Ask){
		"another rule":       func(c *rules.Connector, _ *rules.Ask) { c.Hash = "i" },
		"another scheme":     func(_ *rules.Connector, a *rules.Ask) { a.Scheme = "http" },
		"another host":       func(_ *rules.Connector, a *rules.Ask) { a.Authority = "api2.test" },
		"another method":     func(_ *rules.Connector, a *rules.Ask) { a.Method = "POST" },
		"another token":      func(_ *rules.Connector, a *rules.Ask) { a.Body = []byte("token=b") },
		"another place":      func(_ *rules.Connector, a *rules.Ask) { a.Target = "/you" },
		"another credential": func(_ *rules.Connector, a *rules.Ask) { a.Header["Authorization"] = []string{"bob"} },
		"no credential":      func(_ *rules.Connector, a *rules.Ask) { delete(a.Header, "Authorization") },
		"another field with the same": func(_ *rules.Connector, a *rules.Ask) {
			a.Header["X-Key"] = a.Header["Authorization"]
			delete(a.Header, "Authorization")
		},
		"a field with its lines joined": func(_ *rules.Connector, a *rules.Ask) { a.Header["X-Team"] = []string{"ab"} },
		"a field with a line less":      func(_ *rules.Connector, a *rules.Ask) { a.Header["X-Team"] = []string{"a"} },
	} {
		if ask(change) == same {
			t.Errorf("%s is told the account of before", name)
		}
	}
}

// Where nothing is configured, to say that what is configured is wrong would send people the wrong way.
func TestThatNoCredentialsAreConfiguredIsSaid(t *testing.T) {
	t.Parallel()
	const told = "no credentials are configured for things (connectors.settings), and without any "
	for name, tc := range map[string]struct{ account, me, want string }{
		"the account is read from a credential": {`"sha256(header['authorization'])"`, "", told + "the account can't be told"},
		"the API names nobody":                  {"{get: /me, value: response.json.id}", "{}", told + "the account can't be told: "},
		"the API names somebody else":           {"{get: /me, value: response.json.id}", `{"id":"anyone"}`, told + "it is another account"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaProbe)
			w.rule = strings.Replace(w.rule, "account: header[?'x-account'].orValue('')", "account: "+tc.account, 1)
			w.scripted, w.creds = http.Header{"Authorization": {"Bearer of the script"}}, fixed{}
			w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/me" {
					return false
				}
				rw.Header().Set("Content-Type", "application/json")
				_, _ = rw.Write([]byte(tc.me))
				return true
			})
			w.start()
			m := w.unknown("a")
			w.due(m)
			w.wants(m, ledger.NeedsReconcile, tc.want)
		})
	}
}
