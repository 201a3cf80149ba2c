package rules

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
)

// Bounds of an answer in XML.
const (
	maxXMLDepth    = 100
	maxXMLElements = 100_000
)

var errXML = errors.New("malformed XML, or more of it than is read")

// xml is the answer's XML; nil when the body holds none. One with a document type, or in another charset than UTF-8, is
// refused.
func (a *answer) xml() (*jsonValue, *Refusal) {
	if _, problem := a.json(); problem != nil && (a.parsed == nil || a.parsed.problem != nil) {
		return nil, problem
	}
	text := bytes.TrimSpace(a.parsed.bytes)
	if !bytes.HasPrefix(text, []byte("<")) {
		if a.asked && a.Status >= 200 && a.Status <= 299 {
			return nil, refuse(ProblemAmbiguous, "the answer is no XML, such as a page of a proxy")
		}
		return nil, nil //nolint:nilnil // no XML is no failure
	}
	p := &xmlParser{Decoder: xml.NewDecoder(bytes.NewReader(text))}
	v, err := p.children(nil)
	if err != nil || len(v.items) != 1 {
		return nil, refuse(ProblemAmbiguous, "the answer's XML can't be read")
	}
	return &v, nil
}

// xmlParser is the state of one parse.
type xmlParser struct {
	*xml.Decoder
	count, depth int
}

// children reads what is in an element, or in the document. An element that holds no other one is its text. Members are
// named by their local names; one that comes again is a list. Attributes, and text beside elements, are left out.
func (p *xmlParser) children(of *xml.StartElement) (jsonValue, error) {
	v, at, text := jsonValue{kind: jsonObject}, map[string]int{}, []byte(nil)
	if p.depth++; p.depth > maxXMLDepth {
		return v, errXML
	}
	defer func() { p.depth-- }()
	for {
		token, err := p.Token()
		if err != nil {
			if of == nil && errors.Is(err, io.EOF) {
				return v, nil
			}
			return v, errXML
		}
		switch token := token.(type) {
		case xml.StartElement:
			if p.count++; p.count > maxXMLElements {
				return v, errXML
			}
			child, err := p.children(&token)
			if err != nil {
				return v, err
			}
			v.repeat(at, token.Name.Local, child)
		case xml.EndElement:
			if len(v.items) == 0 {
				return stringValue(string(text)), nil
			}
			return v, nil
		case xml.CharData:
			text = append(text, token...)
		case xml.Directive:
			return v, errXML
		case xml.ProcInst, xml.Comment:
		}
	}
}

// repeat adds a member. One that is there becomes a list.
func (v *jsonValue) repeat(at map[string]int, name string, member jsonValue) {
	i, again := at[name]
	switch {
	case !again:
		at[name] = len(v.items)
		v.names, v.items = append(v.names, name), append(v.items, member)
	case v.items[i].kind == jsonArray: // No element is one by itself.
		v.items[i].items = append(v.items[i].items, member)
	default:
		v.items[i] = jsonValue{kind: jsonArray, items: []jsonValue{v.items[i], member}}
	}
}
