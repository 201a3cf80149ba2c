package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"keep-proxy/ledger"
)

// packed is text in a content coding.
func packed(coding, text string) []byte {
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	switch coding {
	case "deflate":
		w = zlib.NewWriter(&out)
	case "raw deflate":
		w, _ = flate.NewWriter(&out, flate.BestSpeed)
	case "zstd":
		w, _ = zstd.NewWriter(&out)
	case "br":
		w = brotli.NewWriter(&out)
	}
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return out.Bytes()
}

// coded answers with this content, which it says is coded.
func coded(coding string, content []byte) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		rw.Header().Set("Content-Type", "application/json")
		rw.Header()["Content-Encoding"] = strings.Split(coding, ";")
		rw.Header().Set("Content-Length", strconv.Itoa(len(content)))
		rw.Header().Set("Content-Digest", "sha-256=:of what is coded:")
		rw.Header().Set("X-Amz-Crc32", "1") // DynamoDB's, also of what is coded.
		_, _ = rw.Write(content)
	}
}

// An API may code an answer although none was asked for. What can be decoded is, so that its
// rule can read it and whoever gets a replay can too; the rest stays as it came, with its field,
// and is nothing that a rule could read.
func TestAnAnswerThatIsCodedUnasked(t *testing.T) {
	t.Parallel()
	const yes, no = `{"ok":true}`, `{"ok":false}`
	bomb := strings.Repeat(" ", 5<<10) + yes // Over the 4 KiB of the rule for /pay.
	broken := packed("gzip", yes)
	broken = broken[:len(broken)-4]
	for name, c := range map[string]struct {
		path, coding string
		content      []byte
		// body is what the script gets, coded or not; "" where the outcome is unknown.
		body  string
		stays bool
	}{
		"gzip":                          {"/shape", "gzip", packed("gzip", yes), yes, false},
		"gzip by its old name":          {"/shape", "X-GZip", packed("gzip", yes), yes, false},
		"gzip behind an empty line":     {"/shape", ";gzip", packed("gzip", yes), yes, false},
		"gzip behind an empty member":   {"/shape", " , gzip", packed("gzip", yes), yes, false},
		"another behind an empty line":  {"/shape", ";br", packed("gzip", yes), "", true},
		"deflate":                       {"/shape", "deflate", packed("deflate", yes), yes, false},
		"zstd":                          {"/shape", "zstd", packed("zstd", yes), yes, false},
		"what isn't zstd":               {"/pay", "zstd", []byte(yes), yes, true},
		"more in zstd than is kept":     {"/pay", "zstd", packed("zstd", bomb), string(packed("zstd", bomb)), true},
		"raw deflate":                   {"/shape", "deflate", packed("raw deflate", yes), yes, false},
		"brotli":                        {"/shape", "br", packed("br", yes), yes, false},
		"brotli around gzip":            {"/shape", "gzip, br", packed("br", string(packed("gzip", yes))), yes, false},
		"more in brotli than is kept":   {"/pay", "br", packed("br", bomb), string(packed("br", bomb)), true},
		"none by name":                  {"/shape", "identity", []byte(yes), yes, false},
		"what the rule doesn't want":    {"/shape", "gzip", packed("gzip", no), "", false},
		"one that isn't known":          {"/pay", "br", []byte(yes), yes, true},
		"one that the rule can't read":  {"/shape", "br", []byte(yes), "", true},
		"two":                           {"/pay", "gzip;br", packed("gzip", yes), string(packed("gzip", yes)), true},
		"what isn't coded":              {"/pay", "gzip", []byte(yes), yes, true},
		"what ends early":               {"/pay", "gzip", broken, string(broken), true},
		"what ends early, for the rule": {"/shape", "gzip", broken, "", true},
		"what isn't deflated":           {"/pay", "deflate", []byte(yes), yes, true},
		"more than is kept":             {"/pay", "gzip", packed("gzip", bomb), string(packed("gzip", bomb)), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, coded(c.coding, c.content))
			ask := func(again bool) {
				g := w.open("a").post(c.path, payX, "Accept-Encoding", "identity")
				if c.body == "" {
					wantProblem(t, g, "unknown-outcome", 424, "is unknown")
					return
				}
				wantAnswer(t, g, 200, c.body, again)
				if got := g.header["Content-Encoding"]; c.stays != (strings.Join(got, ";") == c.coding) || !c.stays && len(got) > 0 {
					t.Errorf("Content-Encoding %q", got)
				}
				// That of content which came in no coding is left, too.
				if got := g.header.Get("Content-Digest"); (got == "") != (!c.stays && c.coding != "identity") {
					t.Errorf("Content-Digest %q", got)
				}
				if got := g.header.Get("X-Amz-Crc32"); (got == "") != (!c.stays && c.coding != "identity") {
					t.Errorf("X-Amz-Crc32 %q", got)
				}
				if got := g.header.Get("Content-Length"); got != strconv.Itoa(len(c.body)) {
					t.Errorf("Content-Length %q", got)
				}
			}
			ask(false)
			m := w.mutation("a")
			if known := c.body != ""; known != (m.State == ledger.Applied) {
				t.Errorf("recorded as %s (%s)", m.State, m.Reason)
			}
			if c.body != "" {
				if length := m.Result.Header["Content-Length"]; len(length) > 0 && length[0] != strconv.Itoa(len(c.body)) {
					t.Errorf("recorded with Content-Length %q", length)
				}
				w.endRun(&run{world: w, id: m.Run})
				ask(true)
			}
			w.wantSends(c.path, 1)
		})
	}
}

// What was spooled before it was decoded goes, whether or not it could be.
func TestDecodingLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 150<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	long := `{"text":"` + base64.StdEncoding.EncodeToString(noise) + `"}`
	whole := packed("gzip", long)
	for name, content := range map[string][]byte{
		"decoded": whole, "broken": whole[:len(whole)-9], "too long": packed("gzip", long+strings.Repeat(" ", 11<<20)),
	} {
		var d disk
		w := newWorld(t, coded("gzip", content), onDisk(t, &d))
		g := w.open("a").post("/again", payX, "Accept-Encoding", "identity")
		want := string(content)
		if name == "decoded" {
			want = long
		}
		if g.err != nil || g.body != want {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(g.body), g.err, len(want))
		}
		d.holds(t, 1)
	}
}

// A field that the client signed arrives as it was signed. The answer is judged, given and kept decoded.
func TestASignedAcceptEncodingStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query, field, value string
		stays               bool
	}{
		"AWS":                  {"", "Authorization", "AWS4-HMAC-SHA256 Credential=K/x, SignedHeaders=accept-encoding;host, Signature=00", true},
		"AWS, other fields":    {"", "Authorization", "AWS4-HMAC-SHA256 Credential=K/x, SignedHeaders=host;x-amz-date, Signature=00", false},
		"a signed URL":         {"?X-Amz-SignedHeaders=accept-encoding%3Bhost", "", "", true},
		"Google's signed URL":  {"?x-goog-signedheaders=Accept-Encoding;host", "", "", true},
		"a URL, other fields":  {"?X-Amz-SignedHeaders=host&q=accept-encoding", "", "", false},
		"RFC 9421":             {"", "Signature-Input", `sig1=("@method" "accept-encoding");created=1`, true},
		"RFC 9421, others":     {"", "Signature-Input", `sig1=("@method" "date");created=1`, false},
		"an older signature":   {"", "Signature", `keyId="k",headers="date Accept-Encoding",signature="x"`, true},
		"a signature by token": {"", "Authorization", "Bearer abc", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan []string, 1)
			const plain = `{"ok":true}`
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				asked <- r.Header["Accept-Encoding"]
				coded("gzip", packed("gzip", plain))(rw, r)
			})
			fields := []string{"Accept-Encoding", "gzip"}
			if c.field != "" {
				fields = append(fields, c.field, c.value)
			}
			g := w.open("a").post("/shape"+c.query, payX, fields...)
			wantAnswer(t, g, 200, plain, false)
			want := "identity"
			if c.stays {
				want = "gzip"
			}
			if got := <-asked; len(got) != 1 || got[0] != want {
				t.Errorf("the upstream was asked for %q", got)
			}
			if g.header.Get("Content-Encoding") != "" || g.header.Get("Content-Length") != strconv.Itoa(len(plain)) {
				t.Errorf("answered with %v", g.header)
			}
			m := w.mutation("a")
			w.endRun(&run{world: w, id: m.Run})
			again := w.open("a").post("/shape"+c.query, payX, fields...)
			wantAnswer(t, again, 200, plain, true)
			if again.header.Get("Content-Encoding") != "" {
				t.Errorf("replayed with %v", again.header)
			}
		})
	}
}
