package admin

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
)

// newHealth makes the server of /healthz and /readyz alone. Who asks needs no token and
// may call it by any name, as a kubelet does: the answers say nothing else.
func (s *Server) newHealth() *http.Server {
	mux := http.NewServeMux()
	for _, rt := range publicRoutes() {
		if rt.id == healthzID || rt.id == readyzID {
			mux.HandleFunc(rt.method+" "+rt.path, s.handler(rt))
		}
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
