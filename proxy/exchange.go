package proxy

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// exchange is one request of a client and what became of it. It belongs to one
// handler.
type exchange struct {
	caller caller
	tunnel *tunnel
	// client ends when the client's connection is gone.
	client  context.Context
	started time.Time
	// sought says that a rule was. Before that nobody knows what of the path must not be logged. After all of the
	// request was matched everybody does.
	sought, matched bool
	// answer is where the answer goes.
	answer *answerWriter
	// bodyErr is why the client's content broke while it was streamed.
	bodyErr atomic.Pointer[error]
	// after run when the answer was delivered, or couldn't be.
	after []func(delivered bool)

	// rule and request, if a rule was found, tell what of the path must not be logged.
	rule    *rules.Operation
	request *rules.Request
	// reads says that the rules let it pass as one that changes nothing.
	reads bool

	// trailers says that the client takes them; see takesTrailers.
	trailers bool
	// asked are the protocols that the client asks to change to, and protocols those that the upstream
	// is asked for. What came of it is switched, nil for nothing.
	asked, protocols []string
	switched         *switched
	// received came from the client in a blind tunnel.
	received int64

	// interims takes the interim responses; see interimsFor.
	interims interims
	// key is that of the mutation, once a rule has told it.
	key *ledger.Key
	// content digests the request's own while it is read, where the request may change something.
	content *digesting
	// body is the request's, once it was read.
	body *dispatch.Content
	read bool

	// What the request's log line says.
	effect, connector, operation, target string
	problem                              problem
	mutation                             *ledger.Mutation
	decision                             ledger.Decision
}

// done runs what waits for the end of the exchange, the latest first. A delivery is noted before
// its caller is forgotten, or a repeat could come in between.
func (x *exchange) done(delivered bool) {
	for _, f := range slices.Backward(x.after) {
		f(delivered)
	}
	x.after = nil
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// withClient says which connection of a client requests come by: its tunnel, if they come in one.
func withClient(ctx context.Context, c any) context.Context {
	return context.WithValue(ctx, upstream.ClientKey{}, c)
}

func tunnelOf(ctx context.Context) *tunnel {
	t, _ := ctx.Value(upstream.ClientKey{}).(*tunnel)
	return t
}

// path is the request's path with the secrets of its rule masked.
func (x *exchange) path(asked string) string {
	if !x.sought {
		return ""
	}
	if x.rule == nil || !x.rule.HidesPath() {
		return asked
	}
	u, err := url.Parse(x.rule.Redact(x.request).URL())
	if err != nil {
		return ""
	}
	return u.Path
}

// told hands the request's one line to the log, and to whoever follows requests.
func (p *Proxy) told(x *exchange, r *http.Request, w *answerWriter, delivered bool) {
	level := zerolog.InfoLevel
	if x.problem != "" {
		level = zerolog.WarnLevel
	}
	e := p.config.Log.WithLevel(level)
	logged := e != nil && p.config.Log.GetLevel() <= level
	followed := p.config.Observer != nil && p.config.Observer.Active()
	if !logged && !followed {
		return
	}
	l := x.line(r.Method, or(r.URL.Host, r.Host), r.URL.Path, w, delivered, p.config.Clock.Now())
	if followed {
		l.Traceparent, l.Tracestate = r.Header.Get("Traceparent"), strings.Join(r.Header["Tracestate"], ",")
		l.Sent = x.sent()
		p.config.Observer.Tell(l)
	}
	if logged {
		l.write(e)
	}
}

// write writes the line to the log.
func (l *Line) write(e *zerolog.Event) {
	e.Str("method", l.Method).Str("host", l.Host).Str("path", l.Path).Int("status", l.Status).Int64("body_bytes", l.Bytes).
		Dur("duration_ms", l.Duration).Bool("delivered", l.Delivered).
		Str("effect", l.Effect).Str("workflow", l.Workflow).Str("item", l.Item).Str("run", l.Run)
	if l.Connector != "" {
		e.Str("connector", l.Connector).Str("operation", l.Operation)
	}
	if l.Problem != "" {
		e.Str("problem", l.Problem)
	}
	if l.Upgrade != "" {
		e.Str("upgrade", l.Upgrade).Int64("received_bytes", l.Received).Str("ended", l.Ended)
	}
	if l.Effect == effectPassthrough {
		e.Int64("received_bytes", l.Received)
	}
	if l.Mutation != "" {
		e.Str("mutation", l.Mutation).Str("state", l.State).Str("decision", l.Decision)
	}
	e.Msg("request")
}
