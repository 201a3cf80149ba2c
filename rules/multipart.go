package rules

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxParts bounds the parts of a body, nested ones too.
const maxParts = 1000

// part is one part of a multipart body (RFC 7578 §4).
type part struct {
	// name is "" for none, as in multipart/related.
	name, filename, media string
	// file says that it has a filename, or is no text in UTF-8.
	file bool
	data []byte
}

// parseMultipart reads the parts. Servers differ on parts that could be cut in two ways, on names in pieces and on
// transfer encodings, so those are refused.
func (c *content) parseMultipart() view {
	switch {
	case c.problem != nil:
		return view{problem: c.problem}
	case !c.multipart:
		return view{}
	}
	parts, why := c.parts()
	if why != "" {
		return view{problem: refuse(ProblemAmbiguous, "the multipart body can't be read in one way alone: "+why)}
	}
	return viewOfParts(parts)
}

// parts are the parts of the body; why says what is wrong with it.
func (c *content) parts() (parts []part, why string) {
	if c.boundary == "" {
		return nil, "its boundary must stand in lines of its own alone, and close the body"
	}
	r := multipart.NewReader(bytes.NewReader(c.bytes), c.boundary)
	for {
		p, err := r.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return parts, ""
		case err != nil:
			return nil, "the fields before a part can't be read"
		case len(parts) == maxParts:
			return nil, "it has more than " + strconv.Itoa(maxParts) + " parts"
		}
		one, why := readPart(p)
		if why != "" {
			return nil, why
		}
		parts = append(parts, one)
	}
}

// readPart reads one part; why says what is wrong with it.
func readPart(p *multipart.Part) (out part, why string) {
	for _, name := range []string{"Content-Disposition", "Content-Type", "Content-Transfer-Encoding"} {
		if len(p.Header[name]) > 1 {
			return out, "a part repeats a field"
		}
	}
	if !slices.Contains([]string{"", "7bit", "8bit", "binary"}, strings.ToLower(p.Header.Get("Content-Transfer-Encoding"))) {
		return out, "a part has a transfer encoding, which servers may undo or not"
	}
	var params map[string]string
	if field := p.Header.Get("Content-Disposition"); field != "" {
		var err error
		if _, params, err = mime.ParseMediaType(field); err != nil || strings.Contains(strings.ReplaceAll(strings.ToLower(field), "filename*", ""), "name*") {
			return out, "the name of a part can't be read; write name=\"…\""
		}
	}
	out.name = params["name"]
	out.filename, out.file = params["filename"]
	out.media = p.Header.Get("Content-Type")
	var err error
	if out.data, err = io.ReadAll(p); err != nil {
		return out, "a part is cut"
	}
	_, problem := declared{types: p.Header["Content-Type"]}.mediaType()
	out.file = out.file || problem != nil || !utf8.Valid(out.data)
	if !utf8.ValidString(out.name + out.filename + out.media) {
		return out, "the name of a part is not UTF-8"
	}
	return out, ""
}

// fileValue is what is read of a file. What it is called stands under a name of its own.
func fileValue(data []byte, media, called, name string) jsonValue {
	v := jsonValue{kind: jsonObject}
	v.put(called, stringValue(name))
	v.put("sha256", stringValue(hexDigest(data)))
	v.put("size", jsonValue{kind: jsonNumber, text: strconv.Itoa(len(data))})
	v.put("type", stringValue(media))
	return v
}

// put appends a member. A text that is empty is absent.
func (v *jsonValue) put(name string, member jsonValue) {
	if member.kind == jsonString && member.text == "" {
		return
	}
	v.names, v.items = append(v.names, name), append(v.items, member)
}

// viewOfParts is the variable multipart: fields and files by name, and all parts in order. What is read by a name that
// comes again is an error; what is compared is each of them.
func viewOfParts(parts []part) view {
	fields, files, all := jsonValue{kind: jsonObject}, jsonValue{kind: jsonObject}, jsonValue{kind: jsonArray}
	tree, compared := &jsonValue{kind: jsonObject}, &pairs{}
	for _, p := range parts {
		value, in, list := stringValue(string(p.data)), "fields.", &fields
		one := jsonValue{kind: jsonObject}
		if p.file {
			value, in, list = fileValue(p.data, p.media, "filename", p.filename), "files.", &files
			one = value
		} else {
			one.put("text", value)
			one.put("type", stringValue(p.media))
			if media, _, _ := strings.Cut(p.media, ";"); p.name != "" && media != "" && !strings.EqualFold(media, "text/plain") {
				compared.list = append(compared.list, pair{"types." + p.name, p.media})
			}
		}
		if p.name == "" {
			in, value = "", one
		} else {
			one.put("name", stringValue(p.name))
		}
		compared.list, all.items = append(compared.list, pair{in + p.name, scalarText(&value)}), append(all.items, one)
		if old, again := list.member(p.name); again {
			*old, list.odd, tree.odd = jsonValue{odd: oddItself}, oddWithin, oddWithin
		} else if p.name != "" {
			list.names, list.items = append(list.names, p.name), append(list.items, value)
		}
	}
	tree.names, tree.items = []string{"fields", "files", "parts"}, []jsonValue{fields, files, all}
	return view{tree: tree, pairs: compared}
}
