package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// Loopback is the address of a listener whose port the system chooses.
const Loopback = "127.0.0.1:0"

// Config says how an API is served. API and Log are required.
type Config struct {
	API API
	// Log is the witness. The server does not close it.
	Log *oracle.Log
	// Listen is the address of the upstream; default Loopback. An address that
	// isn't loopback is refused.
	Listen string
	// Control is the address of the control listener; "" for none.
	Control string
	// Certificate makes it an HTTPS server; nil means plain HTTP.
	Certificate *tls.Certificate
	// NoHTTP2 leaves h2 out of the ALPN offer.
	NoHTTP2 bool
	// Now and After are the clock; default time.Now and time.After.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
}

// Server is a running upstream.
type Server struct {
	cfg   Config
	deck  script.Deck
	gates script.Gates
	rest  rest

	life    context.Context // ends with Close; what waits, waits on it
	end     context.CancelFunc
	upLn    net.Listener
	ctlLn   net.Listener
	up      *http.Server
	ctl     *http.Server
	serving sync.WaitGroup // listeners' loops
	working sync.WaitGroup // requests, late commits included

	prefix string // of request ids, unique per life
	nextID atomic.Int64
	conns  atomic.Int64
	open   atomic.Int64

	mu     sync.Mutex
	err    error
	closed bool
}

// Start restores the API from its log, listens, and serves until Close.
func Start(cfg Config) (*Server, error) {
	if cfg.API == nil || cfg.Log == nil {
		return nil, errors.New("server: API and Log are required")
	}
	setDefaults(&cfg)
	past, err := cfg.Log.Tally()
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if err := cfg.API.Restore(past.Events); err != nil {
		return nil, fmt.Errorf("server: restore %s: %w", cfg.API.Name(), err)
	}
	s := &Server{cfg: cfg, prefix: fmt.Sprintf("q%d", len(past.Events)+past.Torn)}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.listen(); err != nil {
		s.end()
		return nil, err
	}
	s.serve()
	return s, nil
}

func setDefaults(cfg *Config) {
	if cfg.Listen == "" {
		cfg.Listen = Loopback
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.After == nil {
		cfg.After = time.After
	}
}

func (s *Server) listen() error {
	up, err := listenLoopback(s.cfg.Listen)
	if err != nil {
		return err
	}
	s.upLn = up
	if s.cfg.Control == "" {
		return nil
	}
	ctl, err := listenLoopback(s.cfg.Control)
	if err != nil {
		return errors.Join(err, up.Close())
	}
	s.ctlLn = ctl
	return nil
}

// listenLoopback refuses other addresses, since a fake takes money from anyone.
func listenLoopback(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("server: listen: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("server: listen on %q: only loopback addresses are served", addr)
	}
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return ln, nil
}

func (s *Server) serve() {
	quiet := log.New(io.Discard, "", 0) // faults break connections on purpose
	s.up = &http.Server{
		Handler:     http.HandlerFunc(s.handle),
		ErrorLog:    quiet,
		Protocols:   s.protocols(),
		BaseContext: func(net.Listener) context.Context { return s.life },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			s.conns.Add(1)
			return context.WithValue(ctx, connKey{}, c)
		},
		ConnState:         s.count,
		ReadHeaderTimeout: time.Minute,
	}
	s.loop(func() error {
		if s.cfg.Certificate == nil {
			return s.up.Serve(s.upLn)
		}
		s.up.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*s.cfg.Certificate}, MinVersion: tls.VersionTLS12}
		return s.up.ServeTLS(s.upLn, "", "")
	})
	if s.ctlLn == nil {
		return
	}
	s.ctl = &http.Server{Handler: s.controlRoutes(), ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	s.loop(func() error { return s.ctl.Serve(s.ctlLn) })
}

func (s *Server) protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(!s.cfg.NoHTTP2)
	return p
}

func (s *Server) loop(serve func() error) {
	s.serving.Go(func() {
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			s.fail(err)
		}
	})
}

type connKey struct{}

// Addr returns the upstream's address, host:port.
func (s *Server) Addr() string { return s.upLn.Addr().String() }

// URL returns the upstream's base URL, without a slash at its end.
func (s *Server) URL() string {
	if s.cfg.Certificate == nil {
		return "http://" + s.Addr()
	}
	return "https://" + s.Addr()
}

// ControlURL returns the control listener's base URL, "" without one.
func (s *Server) ControlURL() string {
	if s.ctlLn == nil {
		return ""
	}
	return "http://" + s.ctlLn.Addr().String()
}

// Connections returns how many connections were accepted, whether or not
// anything came through them.
func (s *Server) Connections() int { return int(s.conns.Load()) }

// Connected returns how many connections are open.
func (s *Server) Connected() int { return int(s.open.Load()) }

func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
	case http.StateHijacked, http.StateClosed:
		s.open.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// Arm puts the fault behind those that are armed, and shuts the gates that it
// names.
func (s *Server) Arm(f script.Fault) error {
	if err := f.Validate(); err != nil {
		return err
	}
	s.gates.Shut(f)
	return s.deck.Arm(f)
}

// ArmNamed arms the fault that script.Named knows by this name, for the next
// request that is not a read.
func (s *Server) ArmNamed(name string) error {
	f, err := script.Named(name)
	if err != nil {
		return err
	}
	return s.Arm(f)
}

// Armed returns the faults that still wait for requests.
func (s *Server) Armed() []script.Fault { return s.deck.Armed() }

// Disarm removes every fault; requests that already follow one go on.
func (s *Server) Disarm() { s.deck.Clear() }

// Release opens a gate.
func (s *Server) Release(gate string) { s.gates.Release(gate) }

// Tally counts what the log holds.
func (s *Server) Tally() (oracle.Tally, error) { return s.cfg.Log.Tally() }

// Err returns the first error that ended or spoilt the service. Nothing that the server says afterwards can be relied
// on.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("server: %s: %w", s.cfg.API.Name(), err)
	}
}

// begin counts a request as working, unless Close has begun to wait for them.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.working.Add(1)
	return true
}

// Close cuts every connection, abandons what waits without committing it, and returns when all requests have ended. Its
// error is that of Err, if any.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	err := s.up.Close()
	if s.ctl != nil {
		err = errors.Join(err, s.ctl.Close())
	}
	s.serving.Wait()
	s.working.Wait()
	return errors.Join(err, s.Err())
}
