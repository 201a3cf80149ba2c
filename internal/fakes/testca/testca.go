// Package testca makes a certificate authority for upstreams under test, and leaves for them. The leaves pass strict
// verification (RFC 5280): subject and authority key identifiers, key usages, a server-auth extended key usage.
//
// Its keys are for tests and demos: they are written without a passphrase, and
// nothing should trust them beyond that.
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Validity of what is made; both begin an hour ago, for clocks that differ.
const (
	rootLife = 10 * 365 * 24 * time.Hour
	leafLife = 30 * 24 * time.Hour
	backdate = time.Hour
)

// Names of the files that LoadOrCreate keeps.
const (
	CertFile = "fakes-ca.pem"
	keyFile  = "fakes-ca-key.pem"
)

// CA is an authority. It is safe for concurrent use.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New mints an authority.
func New() (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("testca: %w", err)
	}
	tmpl, err := template("keep-proxy fake upstreams", rootLife)
	if err != nil {
		return nil, err
	}
	tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.MaxPathLenZero = true, true, true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("testca: %w", err)
	}
	// Parsed again so that it carries the subject key id that leaves refer to.
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("testca: %w", err)
	}
	return &CA{cert: cert, key: key}, nil
}

func template(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("testca: %w", err)
	}
	from := time.Now().Add(-backdate)
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    from,
		NotAfter:     from.Add(life),
	}, nil
}

// Leaf makes a certificate for 127.0.0.1, ::1, localhost and the given names,
// which may be IP addresses.
func (ca *CA) Leaf(names ...string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("testca: %w", err)
	}
	tmpl, err := template("fake upstream", leafLife)
	if err != nil {
		return nil, err
	}
	tmpl.BasicConstraintsValid = true
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range append([]string{"127.0.0.1", "::1", "localhost"}, names...) {
		if ip := net.ParseIP(name); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, fmt.Errorf("testca: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, ca.cert.Raw}, PrivateKey: key}, nil
}

// PEM returns the root, as upstream_ca wants it.
func (ca *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
}

// Pool returns a pool that holds only the root.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// LoadOrCreate takes the authority kept in dir, or mints one there. The root is in CertFile and its key beside it with
// mode 0600. A folder that holds only one of the two is an error. Two processes must not begin in an empty folder at
// the same time.
func LoadOrCreate(dir string) (*CA, error) {
	certPEM, certErr := os.ReadFile(filepath.Join(dir, CertFile))
	keyPEM, keyErr := os.ReadFile(filepath.Join(dir, keyFile))
	if errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist) {
		return create(dir)
	}
	if err := errors.Join(certErr, keyErr); err != nil {
		return nil, fmt.Errorf("testca: load: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("testca: load: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("testca: load: %s does not hold an authority of this package", dir)
	}
	return &CA{cert: pair.Leaf, key: key}, nil
}

func create(dir string) (*CA, error) {
	ca, err := New()
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(ca.key)
	if err != nil {
		return nil, fmt.Errorf("testca: %w", err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, keyFile), keyPEM, 0o600); err != nil {
		return nil, fmt.Errorf("testca: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, CertFile), ca.PEM(), 0o644); err != nil { //nolint:gosec // a root is public
		return nil, fmt.Errorf("testca: %w", err)
	}
	return ca, nil
}
