package rules

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDecoded bounds what a compressed body may grow to, in bytes.
const maxDecoded = 64 << 20

// content is a body as expressions see it.
type content struct {
	// bytes is the body with its Content-Encoding undone.
	bytes []byte
	// problem is set when the bytes can't be had without guessing; everything
	// that reads the body then refuses with it.
	problem *Refusal
	// jsonProblem is set when the body is JSON that two parsers could read
	// differently; everything that reads its values refuses with it.
	jsonProblem *Refusal
	// json is nil for a body that is not JSON; typed says that it is declared as JSON, untyped
	// that it isn't declared, or as the form that clients declare by themselves.
	json           *jsonValue
	typed, untyped bool
	// form is nil for a body that is not a form.
	form *pairs
	// boundary parts a request's multipart body, and is no part of what that says.
	boundary string
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

// declared are the header fields that say how a body is written. A body is read by them
// alone: two requests that have the same ones and the same body have the same content.
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
	mediaType, problem := d.mediaType()
	if problem != nil {
		return &content{problem: problem}
	}
	plain, problem := d.decode(body)
	if problem != nil {
		return &content{problem: problem}
	}
	if len(d.types) > 0 && strings.Contains(strings.ToLower(d.types[0]), "us-ascii") && !isASCII(plain) {
		return &content{problem: refuse(ProblemAmbiguous, "the body is declared in the charset US-ASCII but holds other characters; declare UTF-8")}
	}
	c := &content{bytes: plain, typed: isJSONType(mediaType), untyped: len(d.types) == 0 || mediaType == formType}
	form := mediaType == formType
	if looksJSON(plain) || !form && !strings.HasPrefix(mediaType, "multipart/") {
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

// parseForm parses the body as a form. One that is JSON was declared as a form by
// mistake, as curl -d does: it may be read as JSON, but not as both.
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

// parseJSON parses the body as JSON whatever it is declared as: clients often
// send JSON under another type, and APIs read it. A body that is not JSON holds
// nothing; one that two parsers could read differently is a problem.
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
	case isJSONType(mediaType) || looksJSON(c.bytes):
		c.jsonProblem = refuse(ProblemAmbiguous, "the body is declared as JSON or begins like it, but can't be parsed as one UTF-8 JSON value")
	}
}

// looksJSON reports whether the first character begins an object or a list.
func looksJSON(body []byte) bool {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	return len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[')
}

// isJSONType knows application/json and the +json suffix (RFC 6839 §3.1).
func isJSONType(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

// mediaType is the media type of a body, lower case, and refuses charsets
// other than UTF-8; [parseContent] looks whether US-ASCII is.
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

// decode undoes the Content-Encoding: gzip, deflate, aws-chunked or none.
func (d declared) decode(body []byte) ([]byte, *Refusal) {
	var r io.Reader
	var err error
	coding := strings.ToLower(strings.TrimSpace(strings.Join(d.codings, ",")))
	if coding == "" || coding == "identity" {
		return body, nil
	}
	in := bytes.NewReader(body)
	switch coding {
	case awsChunked:
		var plain []byte
		if plain, err = undoAWSChunked(d.lengths, body); err == nil {
			return plain, nil
		}
	case "gzip", "x-gzip":
		var z *gzip.Reader
		if z, err = gzip.NewReader(in); err == nil {
			z.Multistream(false)
			r = z
		}
	case "deflate":
		r, err = newInflater(body, in)
	default:
		return nil, refuse(ProblemAmbiguous, "the body's Content-Encoding is not one that is understood here (gzip, deflate, aws-chunked); send it plain")
	}
	if err != nil {
		return nil, refuse(ProblemAmbiguous, "the body is not in its declared Content-Encoding")
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxDecoded+1))
	switch {
	case err != nil:
		return nil, refuse(ProblemAmbiguous, "the body is not in its declared Content-Encoding")
	case len(plain) > maxDecoded:
		return nil, refuse(ProblemTooLarge, "the body decodes to more than 64 MiB")
	case in.Len() > 0:
		return nil, refuse(ProblemAmbiguous, "the compressed body holds more than one stream")
	}
	return plain, nil
}

// newInflater reads deflate as RFC 9110 §8.4.1.2 has it (zlib), and the raw form
// that some clients send.
func newInflater(body []byte, in *bytes.Reader) (io.Reader, error) {
	if len(body) >= 2 && body[0]&0x0f == 8 && (int(body[0])<<8|int(body[1]))%31 == 0 {
		return zlib.NewReader(in)
	}
	return flate.NewReader(in), nil
}
