package server

import (
	"encoding/json"
	"io"
	"net/http"
	"os"

	"keep-proxy/internal/fakes/script"
)

// maxControlBody bounds what the control listener reads.
const maxControlBody = 1 << 20

func (s *Server) controlRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /_control/faults", s.controlArm)
	mux.HandleFunc("GET /_control/faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Armed()) })
	mux.HandleFunc("DELETE /_control/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.Disarm()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /_control/release/{gate}", func(w http.ResponseWriter, r *http.Request) {
		s.Release(r.PathValue("gate"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /_control/log", s.controlLog)
	mux.HandleFunc("GET /_control/counts", s.controlCounts)
	mux.HandleFunc("GET /_control/books", s.controlBooks)
	mux.HandleFunc("POST /_control/settings", s.controlSettings)
	mux.HandleFunc("GET /_control/health", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.health()) })
	return mux
}

// Health is what GET /_control/health answers.
type Health struct {
	API         string `json:"api"`
	URL         string `json:"url"`
	Connections int    `json:"connections"`
	Error       string `json:"error,omitempty"`
}

func (s *Server) health() Health {
	h := Health{API: s.cfg.API.Name(), URL: s.URL(), Connections: s.Connections()}
	if err := s.Err(); err != nil {
		h.Error = err.Error()
	}
	return h
}

// Count is what the log holds of one identity.
type Count struct {
	Sends   int `json:"sends"`
	Effects int `json:"effects"`
	Answers int `json:"answers"`
}

func (s *Server) controlArm(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f, err := script.Decode(body)
	if err == nil {
		err = s.Arm(f)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// controlLog sends the file as it is, torn lines included, so that its reader
// counts as the owner does.
func (s *Server) controlLog(w http.ResponseWriter, _ *http.Request) {
	data, err := os.ReadFile(s.cfg.Log.Path())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = w.Write(data)
}

func (s *Server) controlCounts(w http.ResponseWriter, _ *http.Request) {
	tally, err := s.Tally()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	counts := map[string]Count{}
	for _, id := range tally.Identities() {
		counts[id] = Count{Sends: tally.Sends(id), Effects: tally.Effects(id), Answers: tally.Answers(id)}
	}
	writeJSON(w, counts)
}

func (s *Server) controlBooks(w http.ResponseWriter, _ *http.Request) {
	keeper, ok := s.cfg.API.(Bookkeeper)
	if !ok {
		http.Error(w, s.cfg.API.Name()+" keeps no books", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, keeper.Books())
}

func (s *Server) controlSettings(w http.ResponseWriter, r *http.Request) {
	api, ok := s.cfg.API.(Adjustable)
	if !ok {
		http.Error(w, s.cfg.API.Name()+" has no settings", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBody))
	if err == nil {
		err = api.Adjust(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func writeJSON(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}
