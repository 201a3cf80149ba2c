package rules

import (
	"bytes"
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
