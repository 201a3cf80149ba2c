package rules

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/internal/coding"
)

// StartOfBody is how much is looked into of content that is streamed, in bytes.
const StartOfBody = 64 << 10

// ReadsStart reports whether servers may look for an override in content that is streamed unread.
func (m *Match) ReadsStart(req *Request) bool {
	mediaType, _ := declaredBy(req.Header).mediaType()
	return m.Effect.passes() && !isSafe(req.Method) && !req.BodyLoaded() && mayOverride(mediaType)
}

// JudgeStart looks for an override at the start of streamed content. It reads no more than it needs: of JSON the first
// value, at most 64 KiB.
func (m *Match) JudgeStart(req *Request, content io.Reader) *Refusal {
	if found := m.overrideStart(req, io.LimitReader(content, StartOfBody)); found != "" {
		return refuseOverride(found)
	}
	return nil
}

// JudgeWhole is JudgeStart for content of which all is there. Mostly no word of an override is in it,
// nor an escape that could spell one.
func (m *Match) JudgeWhole(req *Request, content []byte) *Refusal {
	mediaType, _ := declaredBy(req.Header).mediaType()
	if len(req.Header["Content-Encoding"]) == 0 && !isMultipart(mediaType) && !bytes.ContainsAny(content, `\%`) {
		plain := bytes.ToLower(content)
		if !bytes.Contains(plain, []byte("method")) && !bytes.Contains(plain, []byte("verb")) {
			return nil
		}
	}
	return m.JudgeStart(req, bytes.NewReader(content))
}

// refuseOverride is the refusal of an override.
func refuseOverride(found string) *Refusal {
	return refuse(ProblemOverride, "the request overrides its method or path by "+found+"; send it with the method and path that are meant")
}

// mayOverride knows the content in which servers look for overrides.
func mayOverride(mediaType string) bool {
	return mediaType == formType || isMultipart(mediaType) || strings.Contains(mediaType, "json")
}

// overrideStart is overrideBody for content that may be cut, of a request that passes.
func (m *Match) overrideStart(req *Request, body io.Reader) string {
	d := declaredBy(req.Header)
	mediaType, _ := d.mediaType()
	if !mayOverride(mediaType) {
		return ""
	}
	in := bufio.NewReader(d.plain(body))
	if mark, _ := in.Peek(3); hasByteOrderMark(mark) {
		_, _ = in.Discard(len(mark))
	}
	c := &content{}
	if strings.Contains(mediaType, "json") {
		c.json = membersOf(in)
	} else {
		c.bytes, _ = io.ReadAll(io.LimitReader(in, maxDecoded))
		c.form, c.json = &pairs{raw: string(c.bytes)}, membersOf(bytes.NewReader(c.bytes))
	}
	return m.overrideBody(c, mediaType)
}

// plain undoes the Content-Encoding as far as the body goes. One that isn't known stays.
func (d declared) plain(body io.Reader) io.Reader {
	names := coding.Names(d.codings)
	if len(names) == 1 && uncoded(names[0]) {
		return body
	}
	r, err := coding.Reader(body, names)
	switch {
	case errors.Is(err, coding.ErrUnknown):
		return body
	case err != nil:
		return bytes.NewReader(nil)
	}
	return r
}

// membersOf are the members at the top of a JSON object, as far as it goes. One that is cut has no text.
func membersOf(body io.Reader) *jsonValue {
	v := &jsonValue{kind: jsonObject}
	d := jsontext.NewDecoder(body, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return v
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		v.names = append(v.names, name.String())
		value, _ := d.ReadValue()
		text, _ := jsontext.AppendUnquote(nil, value)
		v.items = append(v.items, stringValue(string(text)))
	}
	return v
}
