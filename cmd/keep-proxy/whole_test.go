package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/admin/wire"
)

// askedAt is an admin API that has an answer for each path, and the flag that names it. An answer with
// a type is a refusal.
func askedAt(t *testing.T, answers map[string]string) (flag string) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[r.URL.RequestURI()]
		if strings.HasPrefix(answer, `{"type"`) {
			w.Header().Set("Content-Type", wire.ProblemContentType)
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(api.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tokenVariable, token)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	return "--admin=" + api.URL
}

func TestTheMutationsOfARunThatAreNotShownAreToldOf(t *testing.T) {
	const list = `{"items":[{"id":"m-1","state":"applied","connector":"bank","operation":"pay"}]`
	for name, c := range map[string]struct{ page, want string }{
		"all are shown":       {list + "}", ""},
		"there are more":      {list + `,"next":"aa"}`, "There is more: keep-proxy mutations list FLAG --run r1 --cursor aa\n"},
		"the run made no one": {`{"items":[]}`, ""},
	} {
		flag := askedAt(t, map[string]string{"/v1/runs/r1": `{"id":"r1","state":"running"}`, "/v1/mutations?run=r1": c.page})
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"runs", "show", "r1", flag}, streams{strings.NewReader(""), &out, &errs})
		want := strings.ReplaceAll(c.want, "FLAG", strings.Replace(flag, "=", " ", 1))
		if code != codeOK || errs.String() != want || strings.Contains(out.String(), "m-1") != strings.Contains(c.page, "m-1") {
			t.Errorf("%s: code %d, %q, told %q, want %q", name, code, out.String(), errs.String(), want)
		}
	}
}

func TestARefusedObligationNamesNoFlagOfAnotherCommand(t *testing.T) {
	flag := askedAt(t, map[string]string{"/v1/obligations/m-1/run": `{"type":"urn:keep:problem:not-allowed","title":"Not allowed","status":409,` +
		`"detail":"The obligation can't be run: it is being sent.","actions":[{"action":"skip","consequence":"It is waived."}]}`})
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"obligations", "run", "m-1", "--version", "3", "--reason", "x", flag}, streams{strings.NewReader(""), &out, &errs})
	if want := "keep-proxy: obligation m-1: The obligation can't be run: it is being sent.\n"; code != codeFailed || errs.String() != want {
		t.Errorf("code %d, told %q, want %q", code, errs.String(), want)
	}
}
