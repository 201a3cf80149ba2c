package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/elazarl/goproxy"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// bareVar names a PEM file of roots for upstreams: this binary is then a bare
// goproxy, to compare with. bareH2Var, set to anything, has it speak HTTP/2 on both
// sides.
const (
	bareVar   = "KEEP_INTEGRATION_BARE"
	bareH2Var = "KEEP_INTEGRATION_BARE_H2"
)

// bare runs goproxy's own interception with a certificate store and verified
// upstreams, and no handlers, until its standard input ends.
func bare(rootsFile string) int {
	if err := serveBare(rootsFile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveBare(rootsFile string) error {
	text, err := os.ReadFile(rootsFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	ca, caPEM, err := bareCA()
	if err != nil {
		return err
	}
	g := goproxy.NewProxyHttpServer()
	g.Logger = quiet{}
	g.ConnectDial = nil
	g.Tr = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 256}
	g.AllowHTTP2 = os.Getenv(bareH2Var) != ""
	g.Tr.ForceAttemptHTTP2 = g.AllowHTTP2
	g.CertStore = &leaves{byHost: map[string]*tls.Certificate{}}
	config := goproxy.TLSConfigFromCA(ca)
	g.OnRequest().HandleConnect(goproxy.FuncHttpsHandler(func(host string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		return &goproxy.ConnectAction{Action: goproxy.ConnectMitm, TLSConfig: config}, host
	}))
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	numbers := httptest.NewServer(promhttp.Handler())
	defer numbers.Close()
	if err := json.NewEncoder(os.Stdout).Encode(announcement{Admin: numbers.URL, Proxy: "http://" + l.Addr().String(), CAPEM: string(caPEM)}); err != nil {
		return err
	}
	_ = server.Serve(l) // Ends by Close.
	return nil
}

// bareCA mints the P-256 authority of a bare goproxy.
func bareCA() (*tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "bare"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, text, nil
}

// leaves implements goproxy.CertStorage.
type leaves struct {
	mu     sync.Mutex
	byHost map[string]*tls.Certificate
}

// Fetch gives the leaf of a host, made once.
func (l *leaves) Fetch(host string, gen func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if leaf := l.byHost[host]; leaf != nil {
		return leaf, nil
	}
	leaf, err := gen()
	if err == nil {
		l.byHost[host] = leaf
	}
	return leaf, err
}

// quiet implements goproxy.Logger.
type quiet struct{}

// Printf drops a line.
func (quiet) Printf(string, ...any) {}
