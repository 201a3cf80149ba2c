package rules

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"testing"
)

const trailed = "6\r\nhello\n\r\n0\r\nx-amz-checksum-crc32:NjowIA==\r\n\r\n"

func TestAWSChunked(t *testing.T) {
	t.Parallel()
	sign := ";chunk-signature=" + strings.Repeat("0a", 32)
	cases := []struct {
		name, body, length string
		// want is the content, "-" for a refusal.
		want string
	}{
		{"a digest in a trailer", trailed, "6", "hello\n"},
		{"signed chunks", "3" + sign + "\r\nabc\r\n2" + sign + "\r\nde\r\n0" + sign + "\r\n\r\n", "5", "abcde"},
		{"nothing", "0\r\n\r\n", "0", ""},
		{"lines inside", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "4", "\r\n\r\n"},
		{"another length", trailed, "7", "-"},
		{"no length", trailed, "", "-"},
		{"a length with a sign", trailed, "+6", "-"},
		{"no end", "6\r\nhello\n\r\n", "6", "-"},
		{"no end of the trailers", "0\r\nx-amz-checksum-crc32:NjowIA==\r\n", "0", "-"},
		{"something after the end", "0\r\n\r\nx", "0", "-"},
		{"a second stream", trailed + trailed, "6", "-"},
		{"a chunk that is cut", "7\r\nhello\n", "7", "-"},
		{"data longer than its chunk", "5\r\nhello\n\r\n0\r\n\r\n", "5", "-"},
		{"a size with a prefix", "0x6\r\nhello\n\r\n0\r\n\r\n", "6", "-"},
		{"a size with a space", "6 \r\nhello\n\r\n0\r\n\r\n", "6", "-"},
		{"a size that overflows", "ffffffffffffffff6\r\nhello\n\r\n0\r\n\r\n", "6", "-"},
		{"a bare line feed", "6\nhello\n\r\n0\r\n\r\n", "6", "-"},
		{"a carriage return in a size", "6\r\rhello", "6", "-"},
		{"another extension", "6;name=value\r\nhello\n\r\n0\r\n\r\n", "6", "-"},
		{"a trailer of another kind", "0\r\ncontent-type: a\r\n\r\n", "0", "-"},
		{"a trailer with a space in its name", "0\r\nx-amz-a : b\r\n\r\n", "0", "-"},
		{"no size", "\r\n\r\n", "0", "-"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{"Content-Encoding": {"aws-chunked"}}
			if tc.length != "" {
				header.Set("X-Amz-Decoded-Content-Length", tc.length)
			}
			c := parseContent(header, []byte(tc.body))
			if refused := c.problem != nil; refused != (tc.want == "-") || !refused && string(c.bytes) != tc.want {
				t.Errorf("%q (%v), want %q", c.bytes, c.problem, tc.want)
			}
		})
	}
}

func TestADigestTellsAWSChunkedContentsApartAndNotTheirChunks(t *testing.T) {
	t.Parallel()
	digest := func(body, length string) string {
		r := request(t, "PUT https://api.test/things", body, "Content-Encoding: aws-chunked", "X-Amz-Decoded-Content-Length: "+length)
		return (&scope{req: r}).bodyDigest()
	}
	if a, b := digest(trailed, "6"), digest("2\r\nhe\r\n4\r\nllo\n\r\n0\r\n\r\n", "6"); a != b {
		t.Errorf("the same content has the digests %s and %s", a, b)
	}
	if digest(trailed, "6") == digest("6\r\nHello\n\r\n0\r\n\r\n", "6") {
		t.Error("two contents have one digest")
	}
}

// What is accepted is what another reader of chunks reads.
func FuzzAWSChunked(f *testing.F) {
	f.Add([]byte(trailed))
	f.Add([]byte("3;chunk-signature=0a\r\nabc\r\n0;chunk-signature=0b\r\n\r\n"))
	f.Add([]byte("1\r\na\r\n00\r\n\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		other, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(body)))
		plain, refused := undoAWSChunked([]string{strconv.Itoa(len(other))}, body)
		if refused == nil && (err != nil || !bytes.Equal(plain, other)) {
			t.Errorf("%q was read as %q and by another as %q (%v)", body, plain, other, err)
		}
	})
}
