package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"slices"
)

// Trust says which servers are believed to be who they say. Nil means those that the system trusts.
type Trust struct {
	// Roots verify certificates. Nil means those of the system.
	Roots *x509.CertPool
	// Named are those of Roots that the operator named. One without a SAN is trusted for its Common
	// Name, if the server shows that very one.
	Named []*x509.Certificate
}

// Client returns the configuration for a connection to host. Only where a certificate without a SAN
// may be the host's own does verify make the check of crypto/tls.
func (t *Trust) Client(host string) *tls.Config {
	cfg := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if t == nil {
		return cfg
	}
	cfg.RootCAs = t.Roots
	cfg.InsecureSkipVerify = slices.ContainsFunc(t.Named, func(c *x509.Certificate) bool {
		return !hasSAN(c) && byCommonName(c).VerifyHostname(host) == nil
	})
	if cfg.InsecureSkipVerify {
		cfg.VerifyConnection = func(s tls.ConnectionState) error { return t.verify(host, s.PeerCertificates) }
	}
	return cfg
}

// verify makes the check of crypto/tls, of resumed sessions too. A named certificate without a SAN
// is held against its Common Name.
func (t *Trust) verify(host string, shown []*x509.Certificate) error {
	leaf, opts := shown[0], x509.VerifyOptions{Roots: t.Roots, DNSName: host, Intermediates: x509.NewCertPool()}
	for _, c := range shown[1:] {
		opts.Intermediates.AddCert(c)
	}
	if !hasSAN(leaf) && slices.ContainsFunc(t.Named, leaf.Equal) {
		leaf = byCommonName(leaf)
	}
	if _, err := leaf.Verify(opts); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: shown, Err: err}
	}
	return nil
}

// byCommonName is a certificate as if its Common Name were its SAN.
func byCommonName(c *x509.Certificate) *x509.Certificate {
	out := *c
	out.DNSNames, out.IPAddresses = []string{c.Subject.CommonName}, []net.IP{net.ParseIP(c.Subject.CommonName)}
	return &out
}

// hasSAN reports whether a certificate has a Subject Alternative Name (RFC 5280 §4.2.1.6).
func hasSAN(c *x509.Certificate) bool {
	return slices.ContainsFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) })
}
