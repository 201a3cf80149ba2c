package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// operatorKey is a credential that JSON and URLs spell in other ways, too.
const operatorKey = "sk/live+1234567890"

// fixedCredential is the operator's own.
type fixedCredential struct{}

func (fixedCredential) Always(string, string, string) (name, value string, ok bool, err error) {
	return "Authorization", "Bearer " + operatorKey, true, nil
}

// everything is what the ledger holds of an item's mutation.
func (w *world) everything(item string) string {
	w.t.Helper()
	m := w.mutation(item)
	events, err := w.ledger.Events(w.t.Context(), m.ID, 0, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	kept, err := json.Marshal([]any{m, events})
	if err != nil {
		w.t.Fatal(err)
	}
	all := string(kept)
	if m.Result != nil {
		c, err := w.proxy.bodyOf(w.t.Context(), m.Result.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := w.proxy.contents.Hold(c, nil, func(b, _ []byte) { all += string(b) }); err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

func TestAnEchoedCredentialIsNotKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", ledger.InlineBody)
	for name, tc := range map[string]struct{ path, body, answer, replay string }{
		"in the body":           {"/pay", payX, `{"echo":"Bearer ` + operatorKey + `"}`, `{"echo":"<secret>"}`},
		"in a URL":              {"/pay", payX, `{"next":"/?key=sk%2Flive%2B1234567890&p=2"}`, `{"next":"/?key=<secret>&p=2"}`},
		"in escapes of JSON":    {"/pay", payX, `{"key":"sk\/live\u002b1234567890"}`, `{"key":"<secret>"}`},
		"in a long body":        {"/files/a", "x", long + operatorKey + long, long + "<secret>" + long},
		"beside a secret place": {"/hooks/token", `{"to":"x"}`, `{"key":"other","echo":"` + operatorKey + `"}`, `{"key":"<secret>","echo":"<secret>"}`},
		"nowhere":               {"/pay", payX, `{"id":1}`, `{"id":1}`},
		"nowhere in a long one": {"/files/a", "x", long + long, long + long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("X-Echo", "you are "+r.Header.Get("Authorization"))
				rw.Header().Set("Content-MD5", "of what was said")
				rw.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(rw, tc.answer)
			}, func(c *Config) { c.Credentials = fixedCredential{} })
			r := w.open("a")
			// The script gets what the API said, the ledger keeps none of it.
			first := r.post(tc.path, tc.body)
			wantAnswer(t, first, http.StatusCreated, tc.answer, false)
			if got := first.header.Get("X-Echo"); got != "you are Bearer "+operatorKey {
				t.Errorf("X-Echo of the answer is %q", got)
			}
			w.waitDelivered(r.id, "a")
			if all := w.everything("a"); strings.Contains(all, operatorKey) || strings.Contains(all, "1234567890") {
				t.Errorf("the ledger holds the credential: %.2000s", all)
			}
			if _, err := w.ledger.EndRun(t.Context(), r.id, verdict.Transient, "test", "test"); err != nil {
				t.Fatal(err)
			}
			again := w.open("a").post(tc.path, tc.body)
			wantAnswer(t, again, http.StatusCreated, tc.replay, true)
			if got := again.header.Get("Content-MD5"); (got == "") != (tc.replay != tc.answer) || first.header.Get("Content-MD5") == "" {
				t.Errorf("Content-MD5 of the replay is %q, of the answer %q", got, first.header.Get("Content-MD5"))
			}
			if got := again.header.Get("X-Echo"); got != "you are <secret>" {
				t.Errorf("X-Echo of the replay is %q", got)
			}
			w.wantSends(tc.path, 1)
		})
	}
}

// The script's own credentials are as little kept as the configured one: the script has the answer as it came, and a
// replay is of what is stored.
func TestAnEchoedCredentialOfTheScriptIsNotKept(t *testing.T) {
	t.Parallel()
	const key = "sk_live_51TopSecret"
	for name, tc := range map[string]struct{ path, body, field, value, echo, replay string }{
		"a bearer token":         {"/pay", payX, "Authorization", "Bearer " + key, "Invalid key: " + key, "Invalid key: <secret>"},
		"a password":             {"/pay", payX, "Authorization", "Basic dXNlci1uYW1lOnNrX2xpdmVfNTFUb3BTZWNyZXQ=", "user-name, " + key, "user-name, <secret>"},
		"a vendor's field":       {"/pay", payX, "X-Functions-Key", key, "is " + key, "is <secret>"},
		"a cookie":               {"/pay", payX, "Cookie", "a=b; sid=" + key, "sid " + key, "sid <secret>"},
		"in the query":           {"/pay?api_key=" + key, payX, "", "", "/pay?api_key=" + key, "/pay?api_key=<secret>"},
		"at a secret place":      {"/hooks/x", `{"to":"x","password":"` + key + `"}`, "", "", "wrong: " + key, "wrong: <secret>"},
		"in a secret path":       {"/hooks/" + key, `{"to":"x"}`, "", "", "of /hooks/" + key, "of /hooks/<secret>"},
		"a short one":            {"/pay", payX, "X-Functions-Key", "short-1", "is short-1", "is short-1"},
		"the client's other key": {"/pay", payX, "Idempotency-Key", key, "is " + key, "is " + key},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("X-Echo", tc.echo)
				rw.WriteHeader(http.StatusCreated)
				_, _ = fmt.Fprintf(rw, `{"said":%q}`, tc.echo)
			})
			r := w.open("a")
			ask := func(r *run) got {
				if tc.field == "" {
					return r.post(tc.path, tc.body)
				}
				return r.post(tc.path, tc.body, tc.field, tc.value)
			}
			first := ask(r)
			wantAnswer(t, first, http.StatusCreated, `{"said":"`+tc.echo+`"}`, false)
			w.waitDelivered(r.id, "a")
			if all := w.everything("a"); tc.echo != tc.replay && strings.Contains(all, key) {
				t.Errorf("the ledger holds the credential: %.2000s", all)
			}
			if _, err := w.ledger.EndRun(t.Context(), r.id, verdict.Transient, "test", "test"); err != nil {
				t.Fatal(err)
			}
			again := ask(w.open("a"))
			wantAnswer(t, again, http.StatusCreated, `{"said":"`+tc.replay+`"}`, true)
			if got := again.header.Get("X-Echo"); got != tc.replay {
				t.Errorf("X-Echo of the replay is %q", got)
			}
		})
	}
}

// What a step gave goes into the commit, where a masked value would be another.
func TestWhatAStepGaveIsNotKeptWithTheCredentialOfTheScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"id":"draft of %s"}`, r.Header.Get("X-Functions-Key"))
	})
	w.use(steppedRules)
	if got := w.open("a").post("/mail", `{"to":"x"}`, "X-Functions-Key", operatorKey); got.status != http.StatusBadGateway {
		t.Errorf("got %d %s", got.status, got.body)
	}
	w.wantSends("/drafts/send", 0)
	if all := w.everything("a"); strings.Contains(all, operatorKey) {
		t.Errorf("the ledger holds the credential: %s", all)
	}
}

func TestACredentialInABrokenAnswerIsNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%s\r\n\r\n", operatorKey)
		_ = c.Close()
	}, func(c *Config) { c.Credentials = fixedCredential{} })
	w.open("a").post("/pay", payX)
	if all := w.everything("a"); strings.Contains(all, operatorKey) {
		t.Errorf("the ledger holds the credential: %s", all)
	}
}

func TestWhatAStepGaveIsNotKeptWithTheCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"id":"draft of `+operatorKey+`"}`)
	}, func(c *Config) { c.Credentials = fixedCredential{} })
	w.use(steppedRules)
	wantProblem(t, w.open("a").post("/mail", `{"to":"x"}`), "not-sent", http.StatusBadGateway,
		"what it gave as draft holds a credential, which is never stored")
	w.wantSends("/drafts/send", 0)
	if all := w.everything("a"); strings.Contains(all, operatorKey) {
		t.Errorf("the ledger holds the credential: %s", all)
	}
}

// voucher stands for a signature that the sender makes.
type voucher struct{}

func (voucher) Always(string, string, string) (name, value string, ok bool, err error) {
	return "Authorization", "AWS4-HMAC-SHA256 VOUCHER", true, nil
}

// A mutation goes to the sender with its voucher. What only reads goes out as the script signed it: it may be long.
func TestReadsKeepTheScriptsSignature(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Echo", r.Header.Get("Authorization"))
	}, func(c *Config) { c.Credentials = voucher{} })
	r := w.open("a")
	const own = "AWS4-HMAC-SHA256 Credential=a/b"
	if got := r.post("/files/a", "x", "Authorization", own); got.header.Get("X-Echo") != "AWS4-HMAC-SHA256 VOUCHER" {
		t.Errorf("the mutation has %q (%d %s)", got.header.Get("X-Echo"), got.status, got.body)
	}
	if got := send(r.client, http.MethodGet, r.upstream.URL+"/look", "", "Authorization", own); got.header.Get("X-Echo") != own {
		t.Errorf("the read has %q (%d %s)", got.header.Get("X-Echo"), got.status, got.body)
	}
}
