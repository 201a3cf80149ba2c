package upstream

import (
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"keep-proxy/internal/verdict"
)

// A head over HTTP/2 is held to what one over HTTP/1 is: a status of three digits, the final one
// from 200 on, and one length. golang.org/x/net takes the rest without a word.
func TestAMalformedHeadOverH2IsNoHead(t *testing.T) {
	t.Parallel()
	malformed := Evidence{ErrorClass: ErrorMalformed}
	for name, tc := range map[string]struct {
		status string
		fields []string
		want   Evidence
		length string // what is left of Content-Length
	}{
		"a length":                    {"200", []string{"content-length", "11"}, whole, "11"},
		"no length":                   {"200", nil, whole, ""},
		"equal lengths twice":         {"200", []string{"content-length", "11", "content-length", "11"}, whole, ""},
		"a signed status":             {"+200", nil, malformed, ""},
		"a status of four digits":     {"0200", nil, malformed, ""},
		"a status over 999":           {"1200", nil, malformed, ""},
		"a negative status":           {"-200", nil, malformed, ""},
		"a status below 100":          {"099", nil, malformed, ""},
		"a status of two digits":      {"99", nil, malformed, ""},
		"a signed length":             {"200", []string{"content-length", "+5"}, malformed, ""},
		"a negative length":           {"200", []string{"content-length", "-1"}, malformed, ""},
		"an empty length":             {"200", []string{"content-length", ""}, malformed, ""},
		"a length of letters":         {"200", []string{"content-length", "eleven"}, malformed, ""},
		"a length over 2^63":          {"200", []string{"content-length", "9223372036854775808"}, malformed, ""},
		"lengths that differ":         {"200", []string{"content-length", "5", "content-length", "11"}, malformed, ""},
		"a list of lengths":           {"200", []string{"content-length", "5, 11"}, malformed, ""},
		"a failure that is no number": {"4x0", nil, malformed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := framed(t, func(_ *peer, fr *http2.Framer, id uint32) {
				writeHead(fr, id, false, tc.status, tc.fields...)
				_ = fr.WriteData(id, true, []byte(`{"ok":true}`))
			})
			s := sender(t, Config{FreshFor: time.Hour})
			g := send(t, s, post(u.url("https", "/m"), "x"))
			g.check(t, tc.want)
			if v := Judge(g.ev, Facts{Method: "POST"}, verdict.Opinion{}); v.Kind != Applied && tc.want.Head || v.Kind != Uncertain && !tc.want.Head {
				t.Errorf("verdict %+v", v)
			}
			if n := u.sends.Load(); n != 1 {
				t.Errorf("sent %d times, want once", n)
			}
			resp, err := passer(t, Config{}).RoundTrip(get(t, u.url("https", "/m")))
			if !tc.want.Head {
				var own *Error
				if resp != nil || !errors.As(err, &own) || own.Class != ErrorMalformed {
					t.Fatalf("a read got %+v, %v, want none, as the head is malformed", resp, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(content) != `{"ok":true}` || err != nil {
				t.Errorf("content %q, %v", content, err)
			}
			for of, length := range map[string]string{"a read": resp.Header.Get("Content-Length"), "a mutation": g.Header.Get("Content-Length")} {
				if length != tc.length {
					t.Errorf("the length of %s is %q, want %q", of, length, tc.length)
				}
			}
		})
	}
}
