package reconcilers

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// accepting is what a script's client accepts by itself.
var accepting = http.Header{"Accept-Encoding": {"gzip, deflate, br"}}

// What sends a mutation again asks for no content coding either: who gets the answer may be another
// client than the one whose request is stored.
func TestNoContentCodingIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(t *testing.T) *world{
		"a resend": func(t *testing.T) *world {
			t.Helper()
			w := newWorld(t, viaResend)
			w.scripted = accepting
			w.unknown("a")
			w.after(10 * time.Second)
			return w
		},
		"a redispatch": func(t *testing.T) *world {
			t.Helper()
			w := newWorld(t, viaProbe+"    on_absent: redispatch\n")
			w.scripted = accepting
			m := w.unknown("a")
			for n := 0; n < 20 && w.read(m).State != ledger.Applied; n++ {
				w.after(time.Minute)
			}
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := again(t)
			if posts, _, _ := w.api.counts(); posts != 1 {
				t.Fatalf("%d sends, want one", posts)
			}
			if got := w.api.posts[0].Header["Accept-Encoding"]; len(got) != 1 || got[0] != "identity" {
				t.Errorf("sent with Accept-Encoding %q", got)
			}
		})
	}
}

// What an API codes all the same is decoded before it is kept, so that no credential hides in it
// and everybody can read a replay; what can't be decoded stays, with its field.
func TestACodedAnswerToAResend(t *testing.T) {
	t.Parallel()
	const plain = `{"ok":true,"as":"sk_live_1234567890"}`
	const kept = `{"ok":true,"as":"<secret>"}`
	packed := func(w io.WriteCloser, out *bytes.Buffer, text string) string {
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return out.String()
	}
	var zipped, deflated, bomb bytes.Buffer
	packed(gzip.NewWriter(&zipped), &zipped, plain)
	packed(zlib.NewWriter(&deflated), &deflated, plain)
	fast, err := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	packed(fast, &bomb, plain+strings.Repeat(" ", 64<<20))
	for name, tc := range map[string]struct {
		codings       []string
		content, want string
		stays         bool
	}{
		"gzip":                        {[]string{"gzip"}, zipped.String(), kept, false},
		"gzip behind an empty member": {[]string{" , X-GZIP"}, zipped.String(), kept, false},
		"deflate":                     {[]string{"deflate"}, deflated.String(), kept, false},
		"none by name":                {[]string{"identity"}, plain, kept, false},
		"one that isn't known":        {[]string{"br"}, "\x0b\x02", "\x0b\x02", true},
		"two":                         {[]string{"gzip", "br"}, zipped.String(), zipped.String(), true},
		"what isn't coded":            {[]string{"gzip"}, "{}", "{}", true},
		"more than is kept":           {[]string{"gzip"}, bomb.String(), bomb.String(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaResend)
			m := w.unknown("a")
			w.api.answering(http.StatusCreated, http.Header{"Content-Encoding": tc.codings, "Repr-Digest": {"sha-256=:of what came:"}}, tc.content)
			w.after(10 * time.Second)
			now := w.wants(m, ledger.Applied, "")
			if got := w.resultOf(now); got != tc.want {
				t.Errorf("kept is %.80q, want %.80q", got, tc.want)
			}
			if got := now.Result.Header["Repr-Digest"]; tc.stays != (len(got) > 0) {
				t.Errorf("kept with Repr-Digest %q", got)
			}
			if got := now.Result.Header["Content-Encoding"]; tc.stays != (len(got) > 0) {
				t.Errorf("kept with Content-Encoding %q", got)
			}
		})
	}
}
