package dispatch

import (
	"maps"
	"net/http"

	"keep-proxy/internal/hop"
)

// Fields that keep-proxy sets on answers, and that no upstream may say.
const (
	FieldMutation = "Keep-Mutation"
	FieldState    = "Keep-State"
	FieldReplayed = "Keep-Replayed"
	FieldObserved = "Keep-Observed"
	FieldScope    = "Keep-Scope"
)

// StripAnswer removes from h the fields of one connection and what only the proxy may say. It also
// removes what would lead a client past it: to HTTP/3 (RFC 7838). It reports what hop.Strip does.
func StripAnswer(h http.Header) (nominated bool) {
	nominated = hop.Strip(h)
	for name := range h {
		if ours(name) {
			delete(h, name)
		}
	}
	return nominated
}

// ours reports whether an upstream may not say this to a client.
func ours(name string) bool {
	switch name {
	case FieldMutation, FieldState, FieldReplayed, FieldObserved, FieldScope, "Alt-Svc":
		return true
	}
	return false
}

// stripped is h without what StripAnswer removes: h itself where that is nothing.
func stripped(h http.Header) http.Header {
	for name := range h {
		if hop.Is(name) || ours(name) {
			h = maps.Clone(h)
			StripAnswer(h)
			break
		}
	}
	return h
}
