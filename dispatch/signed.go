package dispatch

import (
	"net/http"
	"strings"
)

const codingField = "accept-encoding"

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
