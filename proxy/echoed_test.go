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
		"what it gave as draft holds the configured credential, which is never stored")
	w.wantSends("/drafts/send", 0)
	if all := w.everything("a"); strings.Contains(all, operatorKey) {
		t.Errorf("the ledger holds the credential: %s", all)
	}
}
