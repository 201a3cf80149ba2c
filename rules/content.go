package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/internal/coding"
)

// maxDecoded bounds what a compressed body may grow to, in bytes.
const maxDecoded = 64 << 20

// content is a body as expressions see it.
type content struct {
	// bytes is the body with its Content-Encoding undone.
	bytes []byte
	// problem is set when the body can't be read without guessing; everything
	// that reads it then refuses with it.
	problem *Refusal
	// opaque says that bytes are all the same what is sent: a rule may know the body by them.
	opaque bool
	// jsonProblem is set when the body is JSON that two parsers could read differently. Everything that reads its
	// values refuses with it.
	jsonProblem *Refusal
	// json is nil for a body that is not JSON. A typed body is declared as JSON. An untyped one isn't declared, or is
	// declared as the form, which clients do by themselves.
	json           *jsonValue
	typed, untyped bool
	// form is nil for a body that is not a form.
	form *pairs
	// multipart says that it is declared as multipart. The boundary parts a request's, and is no part of what that says.
	multipart bool
	boundary  string
	// views are what content.view made.
	views sync.Map
}

// read returns the parsed body; it is parsed once. A body that is not loaded is
// refused.
func (r *Request) read() *content {
	r.once.Do(func() {
		switch {
		case r.alike != nil:
			r.content, r.alike = r.alike.read(), nil
		case !r.BodyLoaded():
			r.content = &content{problem: refuse(ProblemAmbiguous, "the body was not read yet")}
		default:
			r.content = parseContent(r.Header, r.body)
			r.content.boundary = boundaryOf(declaredBy(r.Header), r.content)
		}
	})
	return r.content
}

// opaque reports whether the body can't be read, and may count by its bytes. Frameworks look into forms, JSON and multipart
// of a POST for an override, which could hide there.
func (r *Request) opaque() bool {
	mediaType, problem := declaredBy(r.Header).mediaType()
	return r.read().opaque && (r.Method != http.MethodPost || problem == nil && !mayOverride(mediaType))
}

// declared are the header fields that say how a body is written. A body is read by them alone. Two requests with the
// same fields and the same body have the same content.
type declared struct{ types, codings, lengths []string }

func declaredBy(header http.Header) declared {
	return declared{header["Content-Type"], header["Content-Encoding"], header["X-Amz-Decoded-Content-Length"]}
}

func (d declared) equal(o declared) bool {
	return slices.Equal(d.types, o.types) && slices.Equal(d.codings, o.codings) && slices.Equal(d.lengths, o.lengths)
}

// parseContent decodes and parses a body by what its header declares.
func parseContent(header http.Header, body []byte) *content {
	return declaredBy(header).parse(body)
}

func (d declared) parse(body []byte) *content {
	if len(body) == 0 {
		return &content{}
	}
	if text := string(body[:min(len(body), len(secretShown)+3)]); text == secretShown || text == `"`+secretShown+`"` {
		// Nothing is taken for missing that is only masked.
		return &content{problem: refuse(ProblemAmbiguous, "the body is masked where it is stored")}
	}
	plain, problem := d.decode(body)
	if problem != nil {
		return &content{problem: problem, bytes: plain, opaque: plain != nil}
	}
	mediaType, problem := d.mediaType()
	if problem != nil {
		return &content{problem: problem, bytes: plain, opaque: true}
	}
	if len(d.types) > 0 && strings.Contains(strings.ToLower(d.types[0]), "us-ascii") && !isASCII(plain) {
		return &content{
			problem: refuse(ProblemAmbiguous, "the body is declared in the charset US-ASCII but holds other characters; declare UTF-8"),
			bytes:   plain, opaque: true,
		}
	}
	c := &content{bytes: plain, typed: isJSONType(mediaType), untyped: len(d.types) == 0 || mediaType == formType, multipart: isMultipart(mediaType)}
	form := mediaType == formType
	if looksJSON(plain) || !form && !c.multipart {
		c.parseJSON(mediaType)
	}
	if form {
		c.parseForm()
	}
	if hasByteOrderMark(plain) {
		c.jsonProblem = refuse(ProblemAmbiguous, "the body begins with a byte order mark, which some parsers skip and others refuse; send it without")
		if form {
			c.form.problem = c.jsonProblem
		}
	}
	return c
}

// formType is the media type of a form.
const formType = "application/x-www-form-urlencoded"

// parseForm parses the body as a form. A body of JSON was declared as a form by mistake, as curl -d does. It may be
// read as JSON, but not as both.
func (c *content) parseForm() {
	p := parsePairs(string(c.bytes), "form")
	if c.json != nil {
		p.problem = refuse(ProblemAmbiguous, "the body is declared as a form but is JSON; declare it as application/json")
	}
	c.form = &p
}

// isASCII reports whether every byte is ASCII.
func isASCII(body []byte) bool {
	return !slices.ContainsFunc(body, func(c byte) bool { return c >= utf8.RuneSelf })
}

// hasByteOrderMark knows the marks of UTF-8 and UTF-16.
func hasByteOrderMark(body []byte) bool {
	for _, mark := range []string{"\xef\xbb\xbf", "\xfe\xff", "\xff\xfe"} {
		if strings.HasPrefix(string(body[:min(len(body), len(mark))]), mark) {
			return true
		}
	}
	return false
}

// parseJSON parses the body as JSON whatever it is declared as. Clients often send JSON under another type, and APIs
// read it. A body that is not JSON holds nothing. One that two parsers could read differently is a problem.
func (c *content) parseJSON(mediaType string) {
	v, err := parseJSON(c.bytes)
	switch {
	case err == nil:
		c.json = v
	case errors.Is(err, jsontext.ErrDuplicateName):
		c.jsonProblem = refuse(ProblemAmbiguous, "the JSON body repeats a member name; send each name once")
	case errors.Is(err, errNumberRange):
		c.jsonProblem = refuse(ProblemAmbiguous, "the JSON body holds a number that parsers read differently; send it as a string")
	case errors.Is(err, errTooMany):
		c.jsonProblem = refuse(ProblemAmbiguous, "the JSON body holds too many values to be read here; send fewer at once")
	case !isJSONType(mediaType) && !looksJSON(c.bytes):
	case errors.Is(err, errHalf), errors.Is(err, errNoNumber):
		c.jsonProblem = refuse(ProblemAmbiguous, "the JSON body can't be parsed: "+err.Error())
	default:
		c.jsonProblem = refuse(ProblemAmbiguous, "the body is declared as JSON or begins like it, but can't be parsed as one UTF-8 JSON value")
	}
}

// looksJSON reports whether the first character begins an object or a list.
func looksJSON(body []byte) bool {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	return len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[')
}

// isJSONType knows application/json, the +json suffix (RFC 6839 §3.1), and AWS's JSON.
func isJSONType(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json") || strings.HasPrefix(mediaType, "application/x-amz-json-")
}

// mediaType is the media type of a body, lower case. It refuses charsets other than UTF-8 and US-ASCII. Whether a body
// is US-ASCII is checked by [parseContent].
func (d declared) mediaType() (string, *Refusal) {
	values := d.types
	if len(values) > 1 {
		return "", refuse(ProblemAmbiguous, "Content-Type comes more than once")
	}
	if len(values) == 0 || values[0] == "" {
		return "", nil
	}
	if values[0] == "application/json" {
		return values[0], nil
	}
	mediaType, params, err := mime.ParseMediaType(values[0])
	// A parameter that can't be parsed hides the others, a charset among them.
	if err != nil && (!errors.Is(err, mime.ErrInvalidMediaParameter) || strings.Contains(strings.ToLower(values[0]), "charset")) {
		return "", refuse(ProblemAmbiguous, "Content-Type can't be parsed")
	}
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii":
		return mediaType, nil
	}
	return "", refuse(ProblemAmbiguous, "the body is declared in a charset other than UTF-8; send UTF-8")
}

// errCoded says that a body is not what its Content-Encoding says.
var errCoded = refuse(ProblemAmbiguous, "the body is not in its declared Content-Encoding; send it plain, or in gzip, deflate, br, zstd or aws-chunked")

// decode undoes the Content-Encoding: gzip, deflate, br, zstd, aws-chunked, or none, which some call utf-8. With a problem
// it gives the body as it is sent. The chunks of aws-chunked are left out, as they may be signed anew each time. It gives
// nil if those are broken.
func (d declared) decode(body []byte) ([]byte, *Refusal) {
	names := coding.Names(d.codings)
	if i := slices.Index(names, awsChunked); i >= 0 { // They are outermost, wherever they are named.
		plain, err := undoAWSChunked(d.lengths, body)
		if err != nil {
			line, _, _ := chunkLine(body)
			if _, chunked := chunkSize(line); chunked {
				return nil, errCoded
			}
			return body, errCoded
		}
		body, names = plain, slices.Delete(names, i, i+1)
	}
	if len(names) == 1 && uncoded(names[0]) {
		return body, nil
	}
	plain, err := coding.Decode(body, names, maxDecoded)
	switch {
	case err == nil:
		return plain, nil
	case errors.Is(err, coding.ErrUnknown):
		return body, refuse(ProblemAmbiguous,
			"the body's Content-Encoding is not one that is understood here (gzip, deflate, br, zstd, aws-chunked); send it plain")
	case errors.Is(err, coding.ErrTooLong):
		return body, refuse(ProblemTooLarge, "the body decodes to more than 64 MiB")
	case errors.Is(err, coding.ErrMore):
		return body, refuse(ProblemAmbiguous, "the compressed body holds more than one stream")
	}
	return body, errCoded
}

// uncoded knows the names of no coding. Some clients name the charset there. A server can only ignore or refuse that.
func uncoded(name string) bool { return name == "identity" || name == "utf-8" }

// awsChunked is the coding in which AWS's clients stream uploads. Each chunk may be signed, and trailers may hold a
// digest. The request is sent as it came; what is judged is the content without the coding.
const awsChunked = "aws-chunked"

// errAWSChunked says nothing of the bytes, which may be secret.
var errAWSChunked = errors.New("malformed aws-chunked content")

// maxChunkLine bounds a chunk's size and signature, and a trailer.
const maxChunkLine = 1 << 10

// undoAWSChunked returns the content, if body is exactly one such stream and as long as
// X-Amz-Decoded-Content-Length says.
func undoAWSChunked(declared []string, body []byte) ([]byte, error) {
	if len(declared) != 1 {
		return nil, errAWSChunked
	}
	plain := make([]byte, 0, len(body))
	for {
		line, rest, ok := chunkLine(body)
		size, sized := chunkSize(line)
		if !ok || !sized || size > len(rest) {
			return nil, errAWSChunked
		}
		if size == 0 {
			body = rest
			break
		}
		plain = append(plain, rest[:size]...)
		if body, ok = bytes.CutPrefix(rest[size:], []byte("\r\n")); !ok {
			return nil, errAWSChunked
		}
	}
	if !onlyTrailers(body) || strconv.Itoa(len(plain)) != declared[0] {
		return nil, errAWSChunked
	}
	return plain, nil
}

// Unchunked is the content of a body in aws-chunked, without its trailers.
func Unchunked(header http.Header, body []byte) ([]byte, error) {
	return undoAWSChunked(declaredBy(header).lengths, body)
}

// chunkLine cuts a line that ends in CRLF off.
func chunkLine(body []byte) (line string, rest []byte, ok bool) {
	end := bytes.Index(body[:min(len(body), maxChunkLine)], []byte("\r\n"))
	if end < 0 || bytes.ContainsAny(body[:end], "\r\n") {
		return "", nil, false
	}
	return string(body[:end]), body[end+2:], true
}

// chunkSize reads the beginning of a chunk: its size in hex, and its signature, if there
// is one.
func chunkSize(line string) (int, bool) {
	digits, signature, signed := strings.Cut(line, ";")
	if signed {
		value, ok := strings.CutPrefix(signature, "chunk-signature=")
		if !ok || len(value) == 0 || strings.Trim(value, "0123456789abcdef") != "" {
			return 0, false
		}
	}
	if strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return 0, false
	}
	size, err := strconv.ParseUint(digits, 16, 31)
	return int(size), err == nil
}

// onlyTrailers reports whether what follows the last chunk is trailers of AWS's own and
// the line that ends them.
func onlyTrailers(body []byte) bool {
	for {
		line, rest, ok := chunkLine(body)
		if !ok {
			return false
		}
		if line == "" {
			return len(rest) == 0
		}
		name, _, ok := strings.Cut(line, ":")
		if !ok || !strings.HasPrefix(strings.ToLower(name), "x-amz-") || strings.ContainsAny(name, " \t") {
			return false
		}
		body = rest
	}
}

// oneBoundary stands for the boundary of a multipart body where the body is judged.
const oneBoundary = "keep/v1 boundary"

// boundaryOf is the boundary (RFC 2046 §5.1.1) of a multipart body. It is "" for any other body, and if it also stands
// outside the lines that part the body. Clients make it anew for each request. Taken as it is, a body would differ at
// each run.
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

// partingLine reports whether a line holds only what stands from at to end, and its marks. The marks are two hyphens
// before it, and two more behind it in the last line.
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
