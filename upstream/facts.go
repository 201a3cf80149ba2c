package upstream

import (
	"net/http"
	"strings"
	"time"
)

// Facts are what a verdict needs of request and answer besides the evidence.
type Facts struct {
	// Method is the request method.
	Method string
	// GRPC says that the answer's content is gRPC, whose outcome is not in its
	// HTTP status.
	GRPC bool
	// TooLarge says that the answer's body is over the limit of what is kept.
	TooLarge bool
	// RetryAfter is the answer's Retry-After, 0 if it has none.
	RetryAfter time.Duration
}

// FactsOf returns the facts that an answer's head holds. TooLarge is left to the caller,
// who keeps the body.
func FactsOf(method string, a *Answer, now time.Time) Facts {
	return Facts{Method: method, GRPC: isGRPC(a.Header), RetryAfter: RetryAfter(a.Header, now)}
}

func isGRPC(h http.Header) bool {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/grpc" || strings.HasPrefix(media, "application/grpc+") || strings.HasPrefix(media, "application/grpc-web")
}
