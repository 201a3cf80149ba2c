package app

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/config"
	"keep-proxy/internal/fakes/testca"
	"keep-proxy/upstream"
)

// writePair writes a leaf of the authority as two PEM files.
func writePair(t *testing.T, ca *testca.CA) config.ClientCert {
	t.Helper()
	leaf, err := ca.Leaf()
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	c := config.ClientCert{CertFile: filepath.Join(t.TempDir(), "cert.pem"), KeyFile: filepath.Join(t.TempDir(), "key.pem")}
	for name, block := range map[string]*pem.Block{c.CertFile: {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}, c.KeyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestTheConfiguredCertificateIsShown(t *testing.T) {
	t.Parallel()
	ca, roots := authority(t)
	leaf, err := ca.Leaf()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.String())
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)

	ask := func(list ...config.ClientCert) (int, error) {
		reads := upstream.NewPassthrough(upstream.Config{Roots: roots, Certificate: clientCertificates(list)})
		defer reads.CloseIdle()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := reads.RoundTrip(r)
		if err != nil {
			return 0, err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	pair := writePair(t, ca)
	other, here := pair, pair
	other.Host, here.Host = "*.bank.test", "127.0.0.1"
	if status, err := ask(other, here); status != http.StatusOK {
		t.Errorf("with its certificate: %d, %v", status, err)
	}
	if status, err := ask(other); err == nil {
		t.Errorf("without a certificate: %d", status)
	}
	at, elsewhere := pair, pair
	at.Host, elsewhere.Host = strings.TrimPrefix(s.URL, "https://"), "127.0.0.1:1"
	if status, err := ask(elsewhere, at); status != http.StatusOK {
		t.Errorf("with that of its port: %d, %v", status, err)
	}
	if status, err := ask(elsewhere); err == nil {
		t.Errorf("with that of another port: %d", status)
	}
	here.KeyFile = filepath.Join(t.TempDir(), "gone")
	if status, err := ask(here); err == nil || !strings.Contains(err.Error(), "client_certs of 127.0.0.1") {
		t.Errorf("with one that can't be read: %d, %v", status, err)
	}
}
