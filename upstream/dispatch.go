package upstream

import (
	"context"

	"keep-proxy/internal/clock"
)

func (s *Sender) dispatch(_ context.Context, _ *Request) *Answer {
	now := clock.Take(s.cfg.Clock)
	return &Answer{Body: noBody{}, ex: &ended{Started: now, Ended: now, NotSent: true, ErrorClass: ErrorRequest, Error: "no transport"}}
}
