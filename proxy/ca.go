package proxy

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
	"os"
	"path/filepath"
	"time"
)

// Lifetimes of certificates. Clocks of sandboxes may be behind, so a
// certificate is valid from an hour before it was made.
const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 24 * time.Hour
	clockSlack   = time.Hour
)

// CA is the certificate authority by which the proxy is trusted inside a
// sandbox. Its key never leaves the machine.
type CA struct {
	certificate tls.Certificate
	pem         []byte
}

// LoadCA reads the CA from its two files, PEM each, and mints one into them when
// neither exists. The key file is 0600. One file without the other, or a
// certificate that is no CA, is an error: nothing is overwritten.
func LoadCA(certFile, keyFile string, now time.Time) (*CA, error) {
	_, certErr := os.Stat(certFile)
	_, keyErr := os.Stat(keyFile)
	if errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist) {
		if err := mintCA(certFile, keyFile, now); err != nil {
			return nil, err
		}
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("proxy.ca: %s and %s must hold a certificate and its key (remove both to have new ones made): %w", certFile, keyFile, err)
	}
	if err := checkCA(certificate.Leaf, now); err != nil {
		return nil, fmt.Errorf("proxy.ca: %s: %w", certFile, err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	return &CA{certificate: certificate, pem: text}, nil
}

// PEM returns the CA's certificate, for clients to trust.
func (c *CA) PEM() []byte { return c.pem }

// checkCA says why a certificate can't sign leaves that strict clients accept.
func checkCA(c *x509.Certificate, now time.Time) error {
	switch {
	case !c.IsCA || c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("the certificate may not sign others (basicConstraints CA and keyUsage keyCertSign are needed)")
	case len(c.SubjectKeyId) == 0:
		return errors.New("the certificate has no subject key identifier, which strict clients need")
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate expired on %s", c.NotAfter.Format(time.DateOnly))
	}
	return nil
}

func mintCA(certFile, keyFile string, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the CA's key: %w", err)
	}
	serial, err := serialNumber()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "keep-proxy CA " + serial.Text(36)[:8]},
		NotBefore:             now.Add(-clockSlack),
		NotAfter:              now.Add(caLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return fmt.Errorf("sign the CA's certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the CA's key: %w", err)
	}
	// The key goes first: a crash in between leaves a key without a certificate,
	// which LoadCA reports instead of trusting.
	if err := writeNew(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600); err != nil {
		return fmt.Errorf("write the CA's key: %w", err)
	}
	if err := writeNew(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return fmt.Errorf("write the CA's certificate: %w", err)
	}
	return nil
}

// writeNew writes a whole file, synced, under a name that must not exist.
func writeNew(name string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func serialNumber() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return serial.Add(serial, new(big.Int).Lsh(big.NewInt(1), 121)), nil
}
