package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/elazarl/goproxy"
)

// assemble makes the goproxy server that carries the pipeline. None of its own ways to send is
// left: the pipeline takes the place of its transport for all requests. By itself goproxy reads the
// environment's proxy and sends by a retrying transport. When an upstream fails it ends a tunnel
// without an answer; the pipeline always answers.
func (p *Proxy) assemble() http.Handler {
	g := goproxy.NewProxyHttpServer()
	g.Logger = silent{}
	g.Tr = &http.Transport{Proxy: nil, DialContext: neverDial}
	g.ConnectDial = nil
	// The pipeline strips hop-by-hop fields itself, nominated ones included.
	g.KeepHeader = true
	g.KeepAcceptEncoding = true
	g.OnRequest().DoFunc(func(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		ctx.RoundTripper = goproxy.RoundTripperFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
			return p.pipeline(exchangeOf(r.Context()), r), nil
		})
		return r, nil
	})
	g.OnRequest().HijackConnect(func(r *http.Request, client net.Conn, _ *goproxy.ProxyCtx) {
		p.enterTunnel(r, client)
	})
	return g
}

func neverDial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("goproxy must not dial")
}

// silent drops goproxy's log lines: the pipeline writes one line per request.
type silent struct{}

// Printf implements goproxy.Logger.
func (silent) Printf(string, ...any) {}
