package admin

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/net/http/httpguts"

	"keep-proxy/admin/wire"
)

// maxAccount is the longest account, in bytes, as rules have it.
const maxAccount = 1 << 10

// explain answers POST /v1/explain.
func explain(s *Server, r *http.Request, q *wire.Explain) (*wire.Explanation, error) {
	var faults faults
	if !httpguts.ValidHeaderFieldName(q.Method) {
		faults.add("/method", "no HTTP method", "give GET, POST, …")
	}
	if u, err := url.Parse(q.URL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		faults.add("/url", "no absolute http or https URL", "write https://api.example.com/path")
	}
	for _, name := range slices.Sorted(maps.Keys(q.Headers)) {
		if !httpguts.ValidHeaderFieldName(name) {
			faults.add("/headers", fmt.Sprintf("%q is no field name", name), "see RFC 9110 §5.1")
		}
	}
	if q.Body.Missing != "" {
		faults.add("/body", "no content", `give a string or {"base64": "…"}`)
	}
	if q.Attempt < 0 {
		faults.add("/attempt", "negative", "count from 1, or leave it out")
	}
	if len(q.Account) > maxAccount {
		faults.add("/account", fmt.Sprintf("longer than %d bytes", maxAccount), "give what the API says")
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	out, err := s.config.Explainer.Explain(r.Context(), *q)
	return &out, err
}
