package reconcilers

import (
	"bytes"
	"net/http"
	"strings"

	"keep-proxy/ledger"
)

// shortest is the length, in bytes, below which a credential is not looked for:
// it would be found everywhere.
const shortest = 8

// secrets are values that were sent and must not be stored, should an API echo
// them.
type secrets []string

// values are the secrets and what follows the scheme in them ("Bearer x").
func (s secrets) values() []string {
	var all []string
	for _, v := range s {
		all = append(all, v)
		if _, token, found := strings.Cut(v, " "); found {
			all = append(all, strings.TrimSpace(token))
		}
	}
	return all
}

// mask replaces them in text.
func (s secrets) mask(text string) string {
	if text == "" {
		return "" // As are most reasons.
	}
	for _, v := range s.values() {
		if len(v) >= shortest {
			text = strings.ReplaceAll(text, v, masked)
		}
	}
	return text
}

// body replaces them in content.
func (s secrets) body(content []byte) []byte {
	for _, v := range s.values() {
		if len(v) >= shortest {
			content = bytes.ReplaceAll(content, []byte(v), []byte(masked))
		}
	}
	return content
}

// header replaces them in the fields of an answer.
func (s secrets) header(h http.Header) ledger.Header {
	kept := endToEnd(h)
	for _, values := range kept {
		for i, v := range values {
			values[i] = s.mask(v)
		}
	}
	return kept
}
