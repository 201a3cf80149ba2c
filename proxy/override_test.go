package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// What rules let pass unrecorded may not become another method at the upstream.
func TestWhatIsStreamedOverridesNoMethod(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	for name, c := range map[string]struct {
		kind, body string
		refused    bool
	}{
		"a form":                   {"application/x-www-form-urlencoded", "a=b&_method=DELETE", true},
		"JSON":                     {"application/json", `{"_method":"DELETE"}`, true},
		"long JSON":                {"application/json", `{"_method":"DELETE","a":"` + long + `"}`, true},
		"a form to a safe method":  {"application/x-www-form-urlencoded", "_method=GET&a=" + long, false},
		"long JSON without one":    {"application/json", `{"a":"` + long + `"}`, false},
		"JSON that isn't JSON":     {"application/json", "<" + long, false},
		"a stream of JSON":         {"application/x-ndjson", "{\"a\":1}\n{\"_method\":\"DELETE\"}\n" + long, false},
		"long content of any type": {"application/octet-stream", "_method=DELETE&" + long, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				sum := sha256.New()
				_, _ = io.Copy(sum, r.Body)
				_, _ = io.WriteString(rw, hex.EncodeToString(sum.Sum(nil)))
			})
			for _, chunked := range []bool{false, true} {
				r := w.open(name + map[bool]string{true: " in chunks"}[chunked])
				var content io.Reader = strings.NewReader(c.body)
				if chunked {
					content = struct{ io.Reader }{content}
				}
				req, err := http.NewRequest(http.MethodPost, w.upstream.URL+"/telemetry", content)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", c.kind)
				resp, err := r.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				g := got{resp.StatusCode, resp.Header, string(text), nil}
				if !c.refused {
					if sum := sha256.Sum256([]byte(c.body)); g.body != hex.EncodeToString(sum[:]) {
						t.Errorf("in chunks %t: the upstream got other content: %d %s", chunked, g.status, g.body)
					}
					continue
				}
				wantProblem(t, g, "method-override", 403, "_method']")
				w.wantSends("/telemetry", 0)
				if _, err := w.ledger.FinishRun(t.Context(), r.id, ledger.OutcomeDone, false); err == nil {
					t.Error("the run is done without it")
				}
			}
		})
	}
}
