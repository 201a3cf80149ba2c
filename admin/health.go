package admin

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
)

// sendHealthz answers GET /healthz: the process answers.
func sendHealthz(_ *Server, w http.ResponseWriter, _ *http.Request) error { return sayOK(w) }

// sendReadyz answers GET /readyz: mutations would be carried. The reason why not
// needs a token, see GET /v1/status.
func sendReadyz(s *Server, w http.ResponseWriter, _ *http.Request) error {
	if err := s.config.Ledger.Healthy(); err != nil {
		return refuse("ledger-unavailable", "The ledger takes no records; see GET /v1/status.")
	}
	if err := s.config.Ready(); err != nil {
		return refuse("not-ready", "The proxy carries no mutations now; see GET /v1/status.")
	}
	return sayOK(w)
}

// sayOK answers 200.
func sayOK(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := io.WriteString(w, "ok\n")
	return err
}

// sendMetrics answers GET /metrics.
func sendMetrics(s *Server, w http.ResponseWriter, r *http.Request) error {
	s.config.Metrics.ServeHTTP(w, r)
	return nil
}

// sendOpenAPI answers GET /openapi.json.
func sendOpenAPI(s *Server, w http.ResponseWriter, _ *http.Request) error {
	document, err := s.openapi()
	if err != nil {
		return err
	}
	_, err = w.Write(document)
	return err
}

// newHealth makes the server of /healthz and /readyz alone. Who asks needs no token and may call it by
// any name, as a kubelet does. The answers say nothing else.
func (s *Server) newHealth() *http.Server {
	mux := http.NewServeMux()
	for _, rt := range healthRoutes() {
		mux.HandleFunc(rt.method+" "+rt.path, s.handler(rt))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, refuse("not-found", "Only /healthz and /readyz are answered here, to GET and HEAD."))
	})
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			plainAnswer(w.Header())
			mux.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout,
		WriteTimeout:      headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHealthHeader,
		ErrorLog:          log.New(s.config.Log, "", 0),
	}
}

// maxHealthHeader bounds the head of a probe, in bytes.
const maxHealthHeader = 8 << 10

// ServeHealth answers /healthz and /readyz on ln, which others may reach, until Shutdown;
// then it returns nil.
func (s *Server) ServeHealth(ln net.Listener) error {
	if err := s.health.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin: health: %w", err)
	}
	return nil
}
