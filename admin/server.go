package admin

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"keep-proxy/admin/wire"
)

// Server is the admin API: an [http.Handler], and the server that runs it.
type Server struct {
	config  Config
	holders []holder
	hosts   map[string]bool
	mux     *http.ServeMux
	openapi func() ([]byte, error)
	// opening lets one caller at a time open a run with an Idempotency-Key. Keys share these locks.
	opening [64]sync.Mutex
	http    *http.Server
	health  *http.Server
	// base ends with Shutdown, and streams with it. Other requests go on to
	// their end, so it isn't the base of their contexts.
	base context.Context
}

// Bounds of the HTTP server. Answers have no bound in time, since some are
// streams; a body must come within readTimeout.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
)

// New returns a Server, or every fault of the configuration.
func New(c Config) (*Server, error) {
	c = c.withDefaults()
	holders, err := holders(c)
	if err = errors.Join(c.validate(), err); err != nil {
		return nil, err
	}
	s := &Server{config: c, holders: holders, hosts: map[string]bool{}}
	for _, h := range c.Hosts {
		s.hosts[strings.ToLower(strings.TrimSuffix(h, "."))] = true
	}
	routes := routes()
	s.openapi = sync.OnceValues(func() ([]byte, error) { return openAPI(routes) })
	s.mux = s.newMux(routes)
	base, stop := context.WithCancel(context.Background())
	s.base = base
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(c.Log, "", 0),
		TLSConfig:         c.TLS,
	}
	s.http.RegisterOnShutdown(stop)
	s.health = s.newHealth()
	return s, nil
}

// Serve answers on ln until Shutdown; then it returns nil. Without TLS, ln must be
// loopback TCP or a unix socket.
func (s *Server) Serve(ln net.Listener) error {
	serve := s.http.Serve
	if s.config.TLS != nil {
		// The certificate comes from the configuration.
		serve = func(ln net.Listener) error { return s.http.ServeTLS(ln, "", "") }
	} else if err := checkLoopback(ln); err != nil {
		return err
	}
	if err := serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}

// Shutdown ends streams, lets other answers end, and closes the listeners. When
// ctx ends first, it closes the connections too.
func (s *Server) Shutdown(ctx context.Context) error {
	var errs []error
	for _, server := range []*http.Server{s.http, s.health} {
		if err := server.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("admin: %w", err), server.Close())
		}
	}
	return errors.Join(errs...)
}

// plainAnswer sets what every answer has: it isn't kept, and no browser makes a page of it.
func plainAnswer(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plainAnswer(w.Header())
	if p := s.guard(r); p != nil {
		s.refuse(w, p)
		return
	}
	if escaped := r.URL.EscapedPath(); path.Clean("/"+escaped) != escaped {
		// The mux would redirect, before a token was asked for.
		s.refuse(w, refuse("not-found", "There is nothing at %s; write the path without //, /./, /../ or a slash at its end.", r.URL.Path))
		return
	}
	s.mux.ServeHTTP(w, r)
}

// newMux registers the routes. Under /v1 a token comes before everything, what
// isn't there included.
func (s *Server) newMux(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, rt := range routes {
		mux.HandleFunc(rt.method+" "+rt.path, s.handler(rt))
		methods[rt.path] = append(methods[rt.path], rt.method)
	}
	for at, allowed := range methods {
		mux.HandleFunc(at, s.guarded(at, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			s.refuse(w, refuse("method", "%s takes %s, not %s.", r.URL.Path, strings.Join(allowed, " or "), r.Method))
		}))
	}
	notFound := func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, refuse("not-found", "There is nothing at %s; see /openapi.json.", r.URL.Path))
	}
	mux.HandleFunc("/v1", notFound)
	mux.HandleFunc("/v1/", s.guarded("/v1/", notFound))
	mux.HandleFunc("/", notFound)
	return mux
}

// guarded asks for a token, of any role, before a refusal under /v1.
func (s *Server) guarded(at string, next http.HandlerFunc) http.HandlerFunc {
	if !strings.HasPrefix(at, "/v1/") {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if _, p := s.authorize(r, everybody); p != nil {
			s.refuse(w, p)
			return
		}
		next(w, r)
	}
}

// handler answers a route: token, query, the route's own work, its problem.
func (s *Server) handler(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var who caller
		if rt.guarded() {
			var p *wire.Problem
			if who, p = s.authorize(r, rt.roles); p != nil {
				s.refuse(w, p)
				return
			}
		}
		if err := rt.checkQuery(r.URL.RawQuery); err != nil {
			s.refuse(w, problemOf(err))
			return
		}
		if err := rt.serve(s, w, r.WithContext(withCaller(r.Context(), who)), rt); err != nil {
			s.fail(w, r, err)
		}
	}
}
