package upstream

import "context"

// Sender sends requests, each of them once. Make it with [New]; its methods may be
// called concurrently.
type Sender struct {
	cfg Config
}

// New returns a Sender.
func New(cfg Config) *Sender { return &Sender{cfg: cfg.withDefaults()} }

// Send sends the request once and returns when the head of the answer is complete
// or the dispatch has failed. It never returns nil and never sends again.
//
// The end of ctx breaks the dispatch off, which leaves its outcome uncertain: ctx
// should outlive the script that asked. Request.Total and Config.ResponseTimeout
// bound the dispatch anyway.
func (s *Sender) Send(ctx context.Context, r *Request) *Answer {
	return s.dispatch(ctx, r)
}

// CloseIdle closes the connections that carry no dispatch.
func (s *Sender) CloseIdle() {}
