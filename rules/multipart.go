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
	case c.boundary == "":
		return view{problem: refuseParts("its boundary must stand in lines of its own alone, and close the body")}
	}
	r := multipart.NewReader(bytes.NewReader(c.bytes), c.boundary)
	var parts []part
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return viewOfParts(parts)
		}
		if err != nil {
			return view{problem: refuseParts("the fields before a part can't be read")}
		}
		if len(parts) == maxParts {
			return view{problem: refuseParts("it has more than " + strconv.Itoa(maxParts) + " parts")}
		}
		one, why := readPart(p)
		if why != "" {
			return view{problem: refuseParts(why)}
		}
		parts = append(parts, one)
	}
}

// refuseParts is the refusal of a multipart body.
func refuseParts(why string) *Refusal {
	return refuse(ProblemAmbiguous, "the multipart body can't be read in one way alone: "+why)
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

// value is the part as it is read: the text of a field; digest, size, name and type of a file.
func (p *part) value() jsonValue {
	if !p.file {
		return stringValue(string(p.data))
	}
	v := jsonValue{kind: jsonObject}
	v.put("sha256", stringValue(hexDigest(p.data)))
	v.put("size", jsonValue{kind: jsonNumber, text: strconv.Itoa(len(p.data))})
	v.put("filename", stringValue(p.filename))
	v.put("type", stringValue(p.media))
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
	tree := &jsonValue{kind: jsonObject}
	count, compared := map[string]int{}, &pairs{}
	for _, p := range parts {
		count[p.name]++
	}
	told := map[string]bool{}
	for _, p := range parts {
		value, in, list := p.value(), "fields.", &fields
		one := value
		if p.file {
			in, list = "files.", &files
		} else {
			one = jsonValue{kind: jsonObject}
			one.put("text", value)
			one.put("type", stringValue(p.media))
		}
		if p.name == "" {
			compared.list = append(compared.list, pair{"", string(canonicalValue(&one))})
			all.items = append(all.items, one)
			continue
		}
		compared.list = append(compared.list, pair{in + p.name, scalarText(&value)})
		if media, _, _ := strings.Cut(p.media, ";"); !p.file && media != "" && !strings.EqualFold(media, "text/plain") {
			compared.list = append(compared.list, pair{"types." + p.name, p.media})
		}
		one.put("name", stringValue(p.name))
		all.items = append(all.items, one)
		if told[in+p.name] {
			continue
		}
		told[in+p.name] = true
		if count[p.name] > 1 {
			value = jsonValue{odd: oddItself}
			list.odd, tree.odd = oddWithin, oddWithin
		}
		list.names, list.items = append(list.names, p.name), append(list.items, value)
	}
	tree.names, tree.items = []string{"fields", "files", "parts"}, []jsonValue{fields, files, all}
	return view{tree: tree, pairs: compared}
}
