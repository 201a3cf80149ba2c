package dispatch

import (
	"net/http"
	"slices"
	"strings"
)

const codingField = "accept-encoding"

// SigV4 begins the field Authorization of a request that is signed as AWS has it.
const SigV4 = "AWS4-HMAC-SHA256 "

// Resigns reports whether a configured credential is a key, by which the request is signed anew. It then replaces the
// field, too, besides Authorization.
func Resigns(credential, field string) bool {
	return strings.HasPrefix(credential, SigV4) && slices.ContainsFunc([]string{"Authorization", "X-Amz-Security-Token"},
		func(name string) bool { return strings.EqualFold(name, field) })
}

// signsCoding reports whether a signature of the request covers Accept-Encoding, which then must stay as it
// is. AWS and its kin list the fields in Authorization, or in the query of a signed URL (X-Amz-SignedHeaders).
// HTTP signatures list them in Signature-Input (RFC 9421), older ones in Signature.
func signsCoding(h http.Header, query string) bool {
	for _, name := range []string{"Authorization", "Signature-Input", "Signature"} {
		if strings.Contains(strings.ToLower(strings.Join(h[name], ",")), codingField) {
			return true
		}
	}
	for piece := range strings.SplitSeq(strings.ToLower(query), "&") {
		if name, value, _ := strings.Cut(piece, "="); strings.HasSuffix(name, "signedheaders") && strings.Contains(value, codingField) {
			return true
		}
	}
	return false
}
