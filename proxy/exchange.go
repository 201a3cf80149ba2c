package proxy

import (
	"context"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// exchange is one request of a client and what became of it. It belongs to one
// handler.
type exchange struct {
	caller caller
	tunnel *tunnel
	// client ends when the client's connection is gone.
	client  context.Context
	started time.Time
	// answer is where the answer goes.
	answer *answerWriter
	// bodyErr is why the client's content broke while it was streamed.
	bodyErr atomic.Pointer[error]
	// after run when the answer was delivered, or couldn't be.
	after []func(delivered bool)

	// rule and request, if a rule was found, tell what of the path must not be logged.
	rule    *rules.Operation
	request *rules.Request

	// body is the request's, once it was read.
	body *content
	read bool

	// What the request's log line says.
	effect, connector, operation, target string
	problem                              problem
	mutation                             *ledger.Mutation
	decision                             ledger.Decision
}

// done runs what waits for the end of the exchange, the latest first: a delivery
// is noted before its caller is forgotten, or a repeat could slip in between.
func (x *exchange) done(delivered bool) {
	for _, f := range slices.Backward(x.after) {
		f(delivered)
	}
	x.after = nil
}

type exchangeKey struct{}

type tunnelKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

func withTunnel(ctx context.Context, t *tunnel) context.Context {
	return context.WithValue(ctx, tunnelKey{}, t)
}

func tunnelOf(ctx context.Context) *tunnel {
	t, _ := ctx.Value(tunnelKey{}).(*tunnel)
	return t
}

// path is the request's path with the secrets of its rule masked.
func (x *exchange) path(asked string) string {
	if x.rule == nil || !x.rule.HidesPath() {
		return asked
	}
	u, err := url.Parse(x.rule.Redact(x.request).URL())
	if err != nil {
		return ""
	}
	return u.Path
}

// log writes the request's one line.
func (p *Proxy) log(x *exchange, method, host, path string, w *answerWriter, delivered bool) {
	level := zerolog.InfoLevel
	if x.problem != "" {
		level = zerolog.WarnLevel
	}
	e := p.config.Log.WithLevel(level)
	if e == nil || p.config.Log.GetLevel() > level {
		return
	}
	e.Str("method", method).Str("host", host).Str("path", x.path(path)).Int("status", w.status).Int64("bytes", w.bytes).
		Dur("duration", p.config.Clock.Now().Sub(x.started)).Bool("delivered", delivered).
		Str("effect", x.effect).Str("workflow", x.caller.workflow).Str("item", x.caller.item).Str("run", x.caller.run)
	if x.connector != "" {
		e.Str("connector", x.connector).Str("operation", x.operation)
	}
	if x.problem != "" {
		e.Str("problem", string(x.problem))
	}
	if m := x.mutation; m != nil {
		e.Str("mutation", m.ID).Str("state", string(m.State)).Str("decision", string(x.decision))
	}
	e.Msg("request")
}
