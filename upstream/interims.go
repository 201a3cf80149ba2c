package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
)

// Interims takes the interim responses (RFC 9110 §15.2) to a request of a [Passthrough],
// as they come.
type Interims interface {
	Show(status int, h http.Header)
}

// InterimsKey is where the context of a request holds its Interims, if it has any. A
// trace of net/http would do the same, but needs a context around the request's own,
// which then can't be watched without a goroutine.
type InterimsKey struct{}

func interimsOf(ctx context.Context) Interims {
	to, _ := ctx.Value(InterimsKey{}).(Interims)
	return to
}

// mostInterims bounds the interim responses to a request that net/http sends: with a
// trace it takes any number.
const mostInterims = 1000

var errInterims = errors.New("the upstream sends interim responses without end")

// carried sends a request by net/http's transport.
func (p *Passthrough) carried(r *http.Request) (*http.Response, error) {
	to := interimsOf(r.Context())
	if to == nil {
		return p.transport.RoundTrip(r)
	}
	seen := 0
	return p.transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			if seen++; seen > mostInterims {
				return errInterims
			}
			to.Show(status, http.Header(h))
			return nil
		},
	})))
}
