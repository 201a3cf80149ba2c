package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"
)

// named is a client's certificate with this name in it.
func named(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A session that is resumed goes on as who began it. Under a certificate that was replaced or
// taken away nothing is sent any more, and where none was shown sessions are still resumed.
func TestACertificateIsThatOfNow(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			cfg := serverTLS("http/1.1")
			cfg.ClientAuth, cfg.MaxVersion = tls.RequestClientCert, version
			seen := make(chan string, 8)
			u := serve(t, cfg, func(p *peer) {
				if _, _, read := p.request(); read {
					state := p.Conn.(*countingConn).Conn.(*tls.Conn).ConnectionState()
					who := "nobody"
					if len(state.PeerCertificates) > 0 {
						who = state.PeerCertificates[0].Subject.CommonName
					}
					seen <- fmt.Sprintf("%s, resumed %t", who, state.DidResume)
					p.say(ok)
				}
			})
			var shown *tls.Certificate
			s := sender(t, Config{FreshFor: -1, Certificate: func(string) (*tls.Certificate, error) { return shown, nil }})
			first, second := named(t, "first"), named(t, "second")
			for _, shown = range []*tls.Certificate{first, second, nil, nil, nil} {
				send(t, s, post(u.url("https", "/"), "x")).check(t, whole)
			}
			close(seen)
			var got []string
			for one := range seen {
				got = append(got, one)
			}
			if want := []string{"first, resumed false", "second, resumed false", "nobody, resumed false", "nobody, resumed true", "nobody, resumed true"}; !slices.Equal(got, want) {
				t.Errorf("the upstream saw %q, want %q", got, want)
			}
		})
	}
}

// Without the certificate that there should be nothing is sent, also to an upstream that knows it
// from before.
func TestWithoutItsCertificateNothingIsSent(t *testing.T) {
	t.Parallel()
	cfg := serverTLS("http/1.1")
	cfg.ClientAuth = tls.RequireAnyClientCert
	u := serve(t, cfg, answering(ok))
	shown := named(t, "first")
	var missing error
	s := sender(t, Config{FreshFor: -1, Certificate: func(string) (*tls.Certificate, error) { return shown, missing }})
	send(t, s, post(u.url("https", "/"), "x")).check(t, whole)
	shown, missing = nil, errors.New("its file is gone")
	send(t, s, post(u.url("https", "/"), "x")).check(t, unsent(ErrorTLS))
	if n := u.sends.Load(); n != 1 {
		t.Errorf("the upstream read %d requests, want 1", n)
	}
}
