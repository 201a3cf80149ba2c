package integration

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"keep-proxy/internal/fakes/testca"
)

// Answers of the upstream that can only be read.
const (
	soakBlob = 512 << 10
	soakDrip = 5 * time.Millisecond
)

// soakAPI is an upstream that can only be read, well and badly, by HTTP/2 or HTTP/1.1
// alone.
func soakAPI(tb testing.TB, ca *testca.CA, h2 bool) *httptest.Server {
	tb.Helper()
	leaf, err := ca.Leaf("127.0.0.1")
	if err != nil {
		tb.Fatal(err)
	}
	api := httptest.NewUnstartedServer(http.HandlerFunc(answerSoak))
	api.EnableHTTP2 = h2
	api.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12}
	api.Config.ErrorLog = log.New(io.Discard, "", 0)
	api.Config.IdleTimeout = 5 * time.Second
	api.StartTLS()
	tb.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	return api
}

func answerSoak(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/read":
		_, _ = w.Write(kilobyte)
	case "/blob":
		w.Header().Set("Content-Length", strconv.Itoa(soakBlob))
		for range soakBlob / len(kilobyte) {
			if _, err := w.Write(kilobyte); err != nil {
				return
			}
		}
	case "/drip":
		drip(w, r)
	case "/cut":
		w.Header().Set("Content-Length", strconv.Itoa(2*len(kilobyte)))
		_, _ = w.Write(kilobyte)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "/reset":
		breakOff(w)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// drip goes on until the reader leaves.
func drip(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(soakDrip)
	defer tick.Stop()
	for {
		if _, err := w.Write(kilobyte); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// breakOff resets the connection, or, with HTTP/2, the stream.
func breakOff(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	reset(c)
}
