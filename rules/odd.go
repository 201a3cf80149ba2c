package rules

import (
	"bytes"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/encoding/htmlindex"
)

// An answer is read as clients read it. Its values may be odd: nobody can tell what they say. These are NaN, half an
// emoji, no UTF-8, a number out of range, and those of a repeated name. An odd value that no rule reads says nothing.
// Reading one is an error, which no default hides.
type oddness uint8

// oddWithin is of an object or list that holds an odd value.
const oddWithin, oddItself oddness = 1, 2

var refusedOdd = refuse(ProblemAmbiguous, "the body repeats the name that is read, or has NaN, half an emoji or no UTF-8 there")

// oddAdapter gives CEL the members of an answer. An odd one is noted.
type oddAdapter struct{ *scope }

// NativeToValue implements types.Adapter.
func (a oddAdapter) NativeToValue(v any) ref.Val {
	if v == refusedOdd {
		a.note(refusedOdd)
		return types.WrapErr(refusedOdd)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// noNumber finds texts, and the words of JavaScript and Python for what is no finite number.
var noNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|NaN|Infinity`)

// parseAnswer decodes and parses an answer's body. A byte order mark comes before the declared charset.
func parseAnswer(header http.Header, body []byte) *content {
	plain, problem := declaredBy(header).decode(body)
	if problem != nil {
		return &content{problem: problem}
	}
	mediaType, params, _ := mime.ParseMediaType(header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if hasByteOrderMark(plain) {
		charset = map[byte]string{0xfe: "utf-16be", 0xff: "utf-16le"}[plain[0]]
	}
	if charset != "" && charset != "utf-8" && charset != "utf8" {
		encoding, err := htmlindex.Get(charset)
		if err == nil {
			plain, err = encoding.NewDecoder().Bytes(plain)
			// What means nothing in the charset is no UTF-8 either.
			plain = bytes.ReplaceAll(plain, []byte("\uFFFD"), []byte{0xff})
		} else if isASCII(plain) {
			err = nil
		}
		if err != nil {
			return &content{problem: refuse(ProblemAmbiguous, "the answer can't be read in the charset that it declares")}
		}
	}
	c := declared{types: []string{mediaType}}.parse(bytes.TrimPrefix(plain, []byte("\uFEFF")))
	if c.jsonProblem == nil {
		return c
	}
	text := noNumber.ReplaceAllFunc(c.bytes, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return []byte("9e999") // This is out of range.
	})
	p := jsonParser{jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), 0, true}
	if v, err := p.whole(text); err == nil && v.odd != oddItself {
		c.json, c.jsonProblem = v, nil
	}
	return c
}

// oddText reads a text. An odd one is kept as it is written.
func (p *jsonParser) oddText() (jsonValue, error) {
	raw, err := p.ReadValue()
	text, odd := jsontext.AppendUnquote(nil, raw)
	if err == nil && odd != nil {
		return jsonValue{kind: jsonNumber, text: string(raw), odd: oddItself}, nil //nolint:nilerr // That is what makes it odd.
	}
	return stringValue(string(text)), err
}

// markOdd notes what is odd among the members.
func (v *jsonValue) markOdd() {
	first := map[string]int{}
	for i, name := range v.names {
		if j, again := first[name]; again {
			v.items[i].odd, v.items[j].odd = oddItself, oddItself
		}
		first[name] = i
	}
	if slices.ContainsFunc(v.items, func(one jsonValue) bool { return one.odd > 0 }) {
		v.odd = oddWithin
	}
}
