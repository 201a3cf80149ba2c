package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"net"
	"slices"
)

// Trust says which servers are believed to be who they say. Nil means those that the system trusts.
type Trust struct {
	// Roots verify certificates. Nil means those of the system.
	Roots *x509.CertPool
	// Named are certificates that the operator named. One without a SAN is trusted for its Common
	// Name, if the server shows that very one. One with a SAN needs to be among Roots alone.
	Named []*x509.Certificate
}

// Client returns the configuration for a connection to host. Only where a certificate of Named
// may be the host's own is the usual check repeated here, with what Named adds.
func (t *Trust) Client(host string) *tls.Config {
	cfg := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if t == nil {
		return cfg
	}
	cfg.RootCAs = t.Roots
	var own []*x509.Certificate
	for _, c := range t.Named {
		if c = byCommonName(c); c != nil && c.VerifyHostname(host) == nil {
			own = append(own, c)
		}
	}
	if len(own) > 0 {
		cfg.InsecureSkipVerify = true //nolint:gosec // VerifyConnection does the same, of resumed sessions too.
		cfg.VerifyConnection = func(s tls.ConnectionState) error { return verify(s, host, t.Roots, own) }
	}
	return cfg
}

// DialTLS connects by dial, and speaks TLS and what of HTTP the server chooses.
func (t *Trust) DialTLS(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		cfg := t.Client(host)
		cfg.NextProtos = []string{"h2", "http/1.1"}
		session := tls.Client(c, cfg)
		if err := session.HandshakeContext(ctx); err != nil {
			_ = c.Close()
			return nil, err
		}
		return session, nil
	}
}

// verify makes the check that crypto/tls makes. What that refuses may be one of own.
func verify(s tls.ConnectionState, host string, roots *x509.CertPool, own []*x509.Certificate) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the server showed no certificate")
	}
	shown, others := s.PeerCertificates[0], x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		others.AddCert(c)
	}
	_, err := shown.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, Intermediates: others})
	if i := slices.IndexFunc(own, shown.Equal); err != nil && i >= 0 {
		itself := x509.NewCertPool()
		itself.AddCert(own[i])
		_, err = own[i].Verify(x509.VerifyOptions{Roots: itself, DNSName: host})
	}
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}

// byCommonName is a certificate without a SAN as if its Common Name were one; nil for any other.
func byCommonName(c *x509.Certificate) *x509.Certificate {
	name := c.Subject.CommonName
	if name == "" || hasSAN(c) {
		return nil
	}
	out := *c
	if ip := net.ParseIP(name); ip != nil {
		out.IPAddresses = []net.IP{ip}
	} else {
		out.DNSNames = []string{name}
	}
	return &out
}

// hasSAN reports whether a certificate has a Subject Alternative Name (RFC 5280 §4.2.1.6).
func hasSAN(c *x509.Certificate) bool {
	for _, e := range c.Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) {
			return true
		}
	}
	return false
}
