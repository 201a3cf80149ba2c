package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime"
)

// oneBoundary stands for the boundary of a multipart body where the body is judged.
const oneBoundary = "keep/v1 boundary"

// boundaryOf is the boundary (RFC 2046 §5.1.1) of a multipart body, "" for what is none, or in
// which it stands anywhere else than in the lines that part the body. Clients make it anew for
// each request: taken as it stands, a body would be another one at each run.
func boundaryOf(header declared, c *content) string {
	if c.problem != nil || c.json != nil || len(header.types) != 1 {
		return ""
	}
	mediaType, params, err := mime.ParseMediaType(header.types[0])
	boundary := params["boundary"]
	if err != nil || !isMultipart(mediaType) || boundary == "" || bytes.Contains(c.bytes, []byte(oneBoundary)) && boundary != oneBoundary {
		return ""
	}
	closed := false
	for at, rest := 0, c.bytes; ; {
		i := bytes.Index(rest, []byte(boundary))
		if i < 0 {
			break
		}
		at += i
		end := at + len(boundary)
		ends, parts := partingLine(c.bytes, at, end)
		if !parts || closed {
			return ""
		}
		closed = ends
		at, rest = end, c.bytes[end:]
	}
	if !closed {
		return ""
	}
	return boundary
}

// partingLine reports whether what stands from at to end is all that a line holds but for what
// marks it: two hyphens before it, and behind it two more in the last one.
func partingLine(body []byte, at, end int) (last, ok bool) {
	before, after := body[:at], body[end:]
	if !bytes.HasSuffix(before, []byte("--")) {
		return false, false
	}
	if before = before[:len(before)-2]; len(before) > 0 && before[len(before)-1] != '\n' {
		return false, false
	}
	if last = bytes.HasPrefix(after, []byte("--")); last {
		after = after[2:]
	}
	after = bytes.TrimPrefix(after, []byte("\r"))
	return last, len(after) == 0 && last || len(after) > 0 && after[0] == '\n'
}

// judged is the body as it is compared: each multipart one with the same boundary.
func (c *content) judged() []byte {
	if c.boundary == "" {
		return c.bytes
	}
	return bytes.ReplaceAll(c.bytes, []byte(c.boundary), []byte(oneBoundary))
}

// digest is the hex SHA-256 of judged, which is not put together for it.
func (c *content) digest() string {
	if c.boundary == "" {
		return hexDigest(c.bytes)
	}
	sum, rest := sha256.New(), c.bytes
	for {
		piece, behind, found := bytes.Cut(rest, []byte(c.boundary))
		_, _ = sum.Write(piece)
		if !found {
			return hex.EncodeToString(sum.Sum(nil))
		}
		_, _ = sum.Write([]byte(oneBoundary))
		rest = behind
	}
}
