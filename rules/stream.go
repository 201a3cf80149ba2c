package rules

import (
	"bytes"
	"mime"
	"slices"
)

// AnswersCall reports whether a message is the response of JSON-RPC to the call with that id.
func AnswersCall(id, message []byte) bool {
	v, err := parseJSON(message)
	if id == nil || err != nil || slices.Contains(v.names, "method") {
		return false
	}
	of, given := v.member("id")
	return given && bytes.Equal(canonicalValue(of), id)
}

// ofCall is the answer to a call of ours, where a stream of events holds it. Any other answer stays as it is.
func (r *Response) ofCall(ask *Ask) *Response {
	call, err := parseJSON(ask.Body)
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "text/event-stream" {
		return r
	}
	id, given := idOf(call)
	if !given {
		return r
	}
	// Lines end with CR, LF or both (WHATWG HTML §9.2.6). What follows the last empty line is cut.
	lines := bytes.ReplaceAll(bytes.ReplaceAll(r.Body, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	events := bytes.Split(lines, []byte("\n\n"))
	for _, event := range events[:len(events)-1] {
		var data []byte
		for line := range bytes.SplitSeq(event, []byte("\n")) {
			if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			}
		}
		if AnswersCall(canonicalValue(id), data) {
			header := r.Header.Clone()
			header.Set("Content-Type", "application/json")
			return &Response{Status: r.Status, Header: header, Trailer: r.Trailer, Body: data, Complete: true}
		}
	}
	return r
}
