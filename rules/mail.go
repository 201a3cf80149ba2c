package rules

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/charset"
)

// Bounds of a mail: how deep its parts are nested, and the fields before its content, in bytes.
const (
	maxMailDepth  = 10
	maxMailHeader = 256 << 10
)

// mailFrom says where in a body a mail is.
type mailFrom struct {
	at place // The root is body for the whole of it.
	// encoding is base64, base64url or "" for none.
	encoding string
}

// Fields of a mail: those with addresses, those that it has at most once (RFC 5322 §3.6, RFC 2045), and those that say
// nothing of what is meant. The last are new in each run, or say how the rest is written.
var (
	mailAddresses = []string{"from", "to", "cc", "bcc", "reply-to"}
	mailVolatile  = []string{"date", "message-id", "mime-version", "content-type", "content-transfer-encoding"}
	mailOnce      = slices.Concat(mailAddresses, mailVolatile, []string{"sender", "in-reply-to", "references", "subject"})
)

// find is the mail as it is sent, and the JSON that comes before it in a multipart body; why says what is wrong with it.
func (f *mailFrom) find(c *content) (raw []byte, beside *jsonValue, why string) {
	switch {
	case f.at.root == "body" && c.multipart:
		return c.related()
	case f.at.root == "body":
		return c.bytes, nil, ""
	}
	v, err := walk(c.json, f.at.steps)
	if f.at.root == "form" && c.form != nil && c.form.problem == nil {
		if values := c.form.values(f.at.steps[0].name); len(values) == 1 {
			v, err = stringValue(values[0]), nil
		}
	}
	if err != nil || c.jsonProblem != nil || v.kind != jsonString {
		return nil, nil, "there is no text at " + f.at.source
	}
	encoding := map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding}[f.encoding]
	if encoding == nil {
		return []byte(v.text), nil, ""
	}
	folded := strings.IndexByte(v.text, '\n') >= 0 || strings.IndexByte(v.text, '\r') >= 0
	if raw, err = encoding.Strict().DecodeString(strings.TrimRight(v.text, "=")); err != nil || folded {
		return nil, nil, f.at.source + " is not in " + f.encoding
	}
	return raw, nil, ""
}

// related is what an upload has as multipart/related: JSON that describes the mail, and the mail.
func (c *content) related() (raw []byte, beside *jsonValue, why string) {
	parts, why := c.parts()
	switch {
	case why != "":
		return nil, nil, why
	case len(parts) != 2:
		return nil, nil, "the body is not JSON and the mail behind it"
	}
	media, problem := declared{types: []string{parts[0].media}}.mediaType()
	if beside, err := parseJSON(parts[0].data); err == nil && problem == nil && isJSONType(media) {
		return parts[1].data, beside, ""
	}
	return nil, nil, "the part before it can't be read as JSON"
}

// parseMail reads the mail of a body.
func (c *content) parseMail(from *mailFrom) view {
	if c.problem != nil {
		return view{problem: c.problem}
	}
	raw, beside, why := from.find(c)
	r := mailReader{tree: &jsonValue{kind: jsonObject}}
	if why == "" {
		why = r.read(raw)
	}
	if why != "" {
		return view{problem: refuse(ProblemAmbiguous, "the body can't be read as a mail: "+why)}
	}
	if beside != nil {
		r.tree.put("beside", *beside)
	}
	compared := flatPairs(r.tree)
	r.tree.put("bytes", stringValue(string(raw))) // as it is sent
	return view{tree: r.tree, pairs: compared}
}

// flatPairs are the members of a tree as they are compared. Each element of a list is one, and each member of an object.
func flatPairs(tree *jsonValue) *pairs {
	out := &pairs{}
	for i, name := range tree.names {
		switch v := &tree.items[i]; v.kind {
		case jsonArray:
			for j := range v.items {
				out.list = append(out.list, pair{name, scalarText(&v.items[j])})
			}
		case jsonObject:
			for j := range v.items {
				out.list = append(out.list, pair{name + "." + v.names[j], scalarText(&v.items[j])})
			}
		default:
			out.list = append(out.list, pair{name, scalarText(v)})
		}
	}
	return out
}

// mailReader reads one mail into a tree.
type mailReader struct {
	tree        *jsonValue
	parts       int
	text, html  string
	attachments jsonValue
	// content is that of the part at hand.
	content bytes.Buffer
}

// read reads the mail; what it returns says what is wrong with it.
func (r *mailReader) read(raw []byte) string {
	e, err := message.ReadWithOptions(bytes.NewReader(raw), &message.ReadOptions{MaxHeaderBytes: maxMailHeader})
	if e == nil {
		return "its header can't be read, or is too long"
	}
	if why := r.header(&e.Header); why != "" {
		return why
	}
	r.attachments.kind = jsonArray
	if why := r.entity(e, err, 0); why != "" {
		return why
	}
	r.tree.put("text", stringValue(r.text))
	r.tree.put("html", stringValue(r.html))
	r.tree.put("attachments", r.attachments)
	return ""
}

// header reads the fields. Their folding and their encoded words are undone (RFC 2047).
func (r *mailReader) header(h *message.Header) string {
	values, headers := map[string][]string{}, jsonValue{kind: jsonObject}
	var names []string
	for f := h.Fields(); f.Next(); {
		name := strings.ToLower(f.Key())
		value := f.Value()
		if !slices.Contains(mailAddresses, name) {
			value, _ = f.Text() // Words in a charset that isn't known stay.
		}
		if !utf8.ValidString(value) {
			return "a field of its header is not UTF-8"
		}
		if len(values[name]) == 0 {
			names = append(names, name)
		} else if slices.Contains(mailOnce, name) {
			return "it repeats the field " + name
		}
		values[name] = append(values[name], value)
	}
	if len(names) == 0 {
		return "it has no header"
	}
	for _, name := range mailAddresses {
		list, ok := mailboxes(values[name])
		if !ok {
			return "the addresses of the field " + name + " can't be read"
		}
		r.tree.put(strings.ReplaceAll(name, "-", "_"), list)
	}
	for _, name := range names {
		switch value := stringValue(strings.Join(values[name], ", ")); {
		case name == "subject" || name == "in-reply-to":
			r.tree.put(strings.ReplaceAll(name, "-", "_"), value)
		case !slices.Contains(mailOnce, name) || name == "sender" || name == "references":
			headers.put(name, value)
		}
	}
	r.tree.put("headers", headers)
	return ""
}

// quotedPairs escape what ends a quoted text (RFC 5322 §3.2.4).
var quotedPairs = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// mailboxes are the addresses of a field, each as NAME <ADDRESS>; none for a field that isn't there, or is empty.
func mailboxes(values []string) (list jsonValue, ok bool) {
	list.kind = jsonArray
	if len(values) == 0 || strings.TrimSpace(values[0]) == "" {
		return list, true
	}
	parser := mail.AddressParser{WordDecoder: &mime.WordDecoder{CharsetReader: charset.Reader}}
	found, err := parser.ParseList(values[0])
	for _, a := range found {
		text := a.Address
		switch {
		case strings.ContainsAny(a.Name, `()<>[]:;@\,."`):
			text = `"` + quotedPairs.Replace(a.Name) + `" <` + text + ">"
		case a.Name != "":
			text = a.Name + " <" + text + ">"
		}
		if !utf8.ValidString(text) {
			return list, false
		}
		list.items = append(list.items, stringValue(text))
	}
	return list, err == nil
}

// entity reads the content of the mail or of a part. The first text and the first HTML are the mail's own; all else is an
// attachment.
func (r *mailReader) entity(e *message.Entity, decoding error, depth int) string {
	for _, name := range []string{"Content-Type", "Content-Transfer-Encoding", "Content-Disposition"} {
		if e.Header.FieldsByKey(name).Len() > 1 {
			return "a part repeats a field"
		}
	}
	media, params, err := e.Header.ContentType()
	if err != nil {
		return "the type of a part can't be read"
	}
	if message.IsUnknownEncoding(decoding) {
		return "a part is in a transfer encoding that isn't known"
	}
	if parts := e.MultipartReader(); parts != nil {
		return r.multipart(parts, params["boundary"], depth)
	}
	disposition, shown, err := e.Header.ContentDisposition()
	if err != nil && e.Header.Has("Content-Disposition") {
		return "the disposition of a part can't be read"
	}
	name := cmp.Or(shown["filename"], params["name"]) // The second is how older programs have it.
	r.content.Reset()
	if _, err := r.content.ReadFrom(e.Body); err != nil {
		return "a part is not in its transfer encoding"
	}
	data := r.content.Bytes()
	own := map[string]*string{"text/plain": &r.text, "text/html": &r.html}[media]
	if own == nil || *own != "" || disposition == "attachment" || name != "" {
		if !utf8.ValidString(name + media) {
			return "the name of a part is not UTF-8"
		}
		r.attachments.items = append(r.attachments.items, fileValue(data, media, "name", name))
		return ""
	}
	if decoding != nil || !utf8.Valid(data) {
		return "a text is not in its charset, or in one that isn't known"
	}
	*own = strings.ReplaceAll(string(data), "\r\n", "\n")
	return ""
}

// multipart reads the parts of a part.
func (r *mailReader) multipart(parts message.MultipartReader, boundary string, depth int) string {
	if depth == maxMailDepth {
		return "its parts are nested more than " + strconv.Itoa(maxMailDepth) + " deep"
	}
	for boundary != "" {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return ""
		}
		if part == nil {
			break
		}
		if r.parts++; r.parts > maxParts {
			return "it has more than " + strconv.Itoa(maxParts) + " parts"
		}
		if why := r.entity(part, err, depth+1); why != "" {
			return why
		}
	}
	return "its parts can't be told by a boundary"
}

// mailOf says where the mail of a request is, by the match whose method and path fit; nil where no rule says.
func (op *Operation) mailOf(req *Request) *mailFrom {
	for _, m := range op.matches {
		if m.mail == nil || len(m.methods) > 0 && !slices.Contains(m.methods, req.Method) {
			continue
		}
		if _, fits := m.variables(req); fits {
			return m.mail
		}
	}
	return nil
}

// mail reads where the mail of a request is.
func (d *decoder) mail(m fields, out *matcher) {
	v := m.At("mail")
	if !v.Given() {
		return
	}
	inner, _ := d.Map(v, levelMail)
	from := d.need(inner, "from")
	out.mail = &mailFrom{encoding: word(d, inner.At("encoding"), "", "base64", "base64url")}
	if from.Given() && from.Value == "body" {
		out.mail.at = place{source: "body", root: "body"}
	} else if from.Given() {
		out.mail.at, _ = d.place(from, "json", "form")
	}
}
