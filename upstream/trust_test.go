package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// appliance is a certificate of its own making: for a day around now, by the name alone.
func appliance(t *testing.T, name string, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-12 * time.Hour), NotAfter: time.Now().Add(12 * time.Hour),
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// applianceServer tells of each request the protocol and whether its session was resumed.
func applianceServer(t *testing.T, shown *tls.Certificate, h2 bool) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %t", r.Proto, r.TLS.DidResume)
	}))
	srv.EnableHTTP2 = h2
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{*shown}, MinVersion: tls.VersionTLS12}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// trusting is the configuration that upstream_ca with these certificates makes.
func trusting(named ...*tls.Certificate) Config {
	c := Config{Roots: x509.NewCertPool(), FreshFor: -1}
	for _, one := range named {
		c.Roots.AddCert(one.Leaf)
		c.Named = append(c.Named, one.Leaf)
	}
	return c
}

func TestANamedCertificateIsTrustedForItsNames(t *testing.T) {
	t.Parallel()
	isCA := func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }
	byAddress := func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }
	authority := appliance(t, "An authority", isCA)
	for name, c := range map[string]struct {
		shown *tls.Certificate
		named func(shown *tls.Certificate) []*tls.Certificate
		want  bool
	}{
		"by its Common Name, an address":     {appliance(t, "127.0.0.1", nil), nil, true},
		"by its Common Name, and it is a CA": {appliance(t, "127.0.0.1", isCA), nil, true},
		"by its SAN":                         {appliance(t, "other.test", byAddress), nil, true},
		"beside another": {appliance(t, "127.0.0.1", nil), func(shown *tls.Certificate) []*tls.Certificate {
			return []*tls.Certificate{authority, appliance(t, "127.0.0.1", nil), shown}
		}, true},
		"of another name": {appliance(t, "other.test", nil), nil, false},
		"whose SAN has another name": {appliance(t, "127.0.0.1", func(c *x509.Certificate) {
			c.DNSNames = []string{"other.test"}
		}), nil, false},
		"that is over": {appliance(t, "127.0.0.1", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }), nil, false},
		"that isn't valid yet": {appliance(t, "127.0.0.1", func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(time.Hour)
		}), nil, false},
		"beside one of the same name": {appliance(t, "127.0.0.1", nil), func(*tls.Certificate) []*tls.Certificate {
			return []*tls.Certificate{appliance(t, "127.0.0.1", nil)}
		}, false},
		"that nobody named": {appliance(t, "127.0.0.1", nil), func(*tls.Certificate) []*tls.Certificate { return nil }, false},
	} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %t", name, h2), func(t *testing.T) {
				t.Parallel()
				named := []*tls.Certificate{c.shown}
				if c.named != nil {
					named = c.named(c.shown)
				}
				srv := applianceServer(t, c.shown, h2)
				cfg := trusting(named...)
				s := New(cfg)
				defer s.Close()
				p := NewPassthrough(cfg)
				defer p.CloseIdle()
				for range 2 { // The second resumes the session of the first.
					sent := send(t, s, post(mustURL(t, srv.URL), "x"))
					_, content, _, err := readAll(p, get(t, mustURL(t, srv.URL)))
					class, _ := err.(*Error) //nolint:errorlint // It is one.
					switch {
					case c.want && (sent.Status != http.StatusOK || err != nil || strings.HasPrefix(content, "HTTP/2") != h2):
						t.Errorf("%s: %v, %q", sent.ev.Error, err, content)
					case !c.want && (!sent.ev.NotSent || sent.ev.ErrorClass != ErrorCertificate || class == nil || class.Class != ErrorCertificate):
						t.Errorf("%+v, %v", sent.ev, err)
					}
				}
			})
		}
	}
}

// A session is resumed only for as long as its certificate is trusted.
func TestAResumedSessionOfANamedCertificateIsHeldAgainstIt(t *testing.T) {
	t.Parallel()
	shown := appliance(t, "127.0.0.1", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(3 * time.Second) })
	srv := applianceServer(t, shown, false)
	named := trusting(shown)
	trust := &Trust{Roots: named.Roots, Named: named.Named}
	cfg := trust.Client("127.0.0.1")
	check := cfg.VerifyConnection
	resumed := false
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		resumed = resumed || s.DidResume
		if s.DidResume {
			return check(tls.ConnectionState{PeerCertificates: []*x509.Certificate{appliance(t, "127.0.0.1", nil).Leaf}})
		}
		return check(s)
	}
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
	ask := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	if err := ask(); err == nil || !resumed {
		t.Errorf("resumed %t: %v", resumed, err)
	}
}

func TestOnlyTheNamedHostsAreCheckedHere(t *testing.T) {
	t.Parallel()
	trust := &Trust{Roots: x509.NewCertPool(), Named: []*x509.Certificate{appliance(t, "*.corp.test", nil).Leaf, appliance(t, "Corp Root", nil).Leaf}}
	for host, want := range map[string]bool{
		"nas.corp.test": true, "NAS.Corp.Test": true, "corp.test": false, "a.b.corp.test": false, "api.test": false, "127.0.0.1": false,
	} {
		if cfg := trust.Client(host); cfg.InsecureSkipVerify != want || (cfg.VerifyConnection != nil) != want {
			t.Errorf("%s: %t, want %t", host, cfg.InsecureSkipVerify, want)
		}
	}
	var none *Trust
	if cfg := none.Client("nas.corp.test"); cfg.InsecureSkipVerify || cfg.RootCAs != nil {
		t.Error("nobody named anything")
	}
}

// One that a trusted authority vouches for passes as ever, on a host of a named certificate too.
func TestANamedHostMayShowAnotherTrustedCertificate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer srv.Close()
	for name, c := range map[string]struct {
		roots *x509.CertPool
		want  bool
	}{"a trusted one": {srvRoots(srv), true}, "one that isn't": {x509.NewCertPool(), false}} {
		trust := &Trust{Roots: c.roots, Named: []*x509.Certificate{appliance(t, "127.0.0.1", nil).Leaf}}
		dial := DialTLS(Config{Roots: trust.Roots, Named: trust.Named})
		conn, err := dial(t.Context(), "tcp", srv.Listener.Addr().String())
		if (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
}
