package rules

import (
	"bytes"
	"slices"
)

// CallID is the id of a call of JSON-RPC, in its canonical form; nil for anything else.
func CallID(req *Request) []byte {
	v := req.read().json
	if v == nil {
		return nil
	}
	id, given := v.member("id")
	if !given || id.kind != jsonString && id.kind != jsonNumber {
		return nil
	}
	return canonicalValue(id)
}

// AnswersCall reports whether a message is the response of JSON-RPC to the call with that id.
func AnswersCall(id, message []byte) bool {
	v, err := parseJSON(message)
	if id == nil || err != nil || slices.Contains(v.names, "method") {
		return false
	}
	of, given := v.member("id")
	return given && bytes.Equal(canonicalValue(of), id)
}
