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
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Lifetimes of certificates. Clocks of sandboxes may be days behind, as in a resumed snapshot. So a
// certificate is valid from long before it was made.
const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	caSlack      = 30 * 24 * time.Hour
	leafLifetime = 24 * time.Hour
	leafSlack    = 7 * 24 * time.Hour
)

// CA is the certificate authority by which the proxy is trusted inside a
// sandbox. Its key never leaves the machine.
type CA struct {
	certificate tls.Certificate
	pem         []byte
}

// LoadCA reads the CA from its two PEM files. When neither exists it mints one; minting that was
// cut short is finished. The key file is 0600. One file without the other, or a certificate that is
// no CA, is an error: nothing is overwritten.
func LoadCA(certFile, keyFile string, now time.Time) (*CA, error) {
	_, certErr := os.Stat(certFile)
	_, keyErr := os.Stat(keyFile)
	noCert, noKey := errors.Is(certErr, fs.ErrNotExist), errors.Is(keyErr, fs.ErrNotExist)
	var err error
	switch {
	case noCert && noKey:
		err = mintCA(certFile, keyFile, now)
	case noCert:
		err = putInPlace(certFile)
	case noKey:
		err = putInPlace(keyFile)
	}
	if err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("proxy.ca: %s and %s must hold a certificate and its key (remove both to have new ones made): %w", certFile, keyFile, err)
	}
	if err := checkCA(certificate.Leaf, now); err != nil {
		return nil, fmt.Errorf("proxy.ca: %s: %w", certFile, err)
	}
	var text []byte
	for _, der := range certificate.Certificate {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return &CA{certificate: certificate, pem: text}, nil
}

// PEM returns the CA's certificate, for clients to trust, and after it those in its file that vouch
// for it. Some clients trust none without a root.
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
		NotBefore:             now.Add(-caSlack),
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
	// Both are there whole before either has its name. So what a crash leaves of one can be finished.
	err = errors.Join(
		writePending(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600),
		writePending(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
	)
	if err == nil {
		err = errors.Join(putInPlace(keyFile), putInPlace(certFile))
	}
	if err != nil {
		return fmt.Errorf("write the CA: %w", err)
	}
	return nil
}

// pending is the name of a file of the CA until both are written.
func pending(name string) string { return name + ".new" }

// writePending writes a whole file, synced with its folder, under its pending name.
func writePending(name string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := os.Remove(pending(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(pending(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close(), syncFolder(filepath.Dir(name)))
}

// putInPlace gives a file that was written its name, if there is one.
func putInPlace(name string) error {
	err := os.Rename(pending(name), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncFolder(filepath.Dir(name)))
}

// syncFolder makes the names in a folder last.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func serialNumber() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return serial.Add(serial, new(big.Int).Lsh(big.NewInt(1), 121)), nil
}

// maxLeaves bounds the cache: a script that walks through host names must not
// fill the memory.
const maxLeaves = 4096

// maxName is the longest name of a host (RFC 1035 §2.3.4, as text). TLS takes far longer ones.
const maxName = 253

// leaves makes and keeps the certificates shown inside tunnels, one per name.
type leaves struct {
	ca  *CA
	key *ecdsa.PrivateKey
	now func() time.Time

	making singleflight.Group
	mu     sync.RWMutex
	byName map[string]*tls.Certificate
}

func newLeaves(ca *CA, now func() time.Time) (*leaves, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the leaf certificates' key: %w", err)
	}
	return &leaves{ca: ca, key: key, now: now, byName: make(map[string]*tls.Certificate)}, nil
}

// get returns the certificate for a host name or address.
func (l *leaves) get(name string) (*tls.Certificate, error) {
	if len(name) > maxName {
		return nil, fmt.Errorf("a server name of %d bytes is no host's", len(name))
	}
	l.mu.RLock()
	leaf := l.byName[name]
	l.mu.RUnlock()
	if leaf != nil && l.lasts(leaf.Leaf) {
		return leaf, nil
	}
	leaf = nil // One that another caller renews may have ended.
	_, err, _ := l.making.Do(name, func() (_ any, err error) {
		leaf, err = l.make(name)
		return nil, err
	})
	if err != nil || leaf != nil {
		return leaf, err
	}
	// Another caller made it.
	return l.get(name)
}

// lasts reports whether a leaf may still be shown. It is renewed at half its life, so that no
// connection starts on one that is about to end. It is also renewed if it was made while the clock
// was ahead: nobody would trust it yet. A bound of the CA's own doesn't mend by renewing.
func (l *leaves) lasts(leaf *x509.Certificate) bool {
	now, ca := l.now(), l.ca.certificate.Leaf
	return (now.Before(leaf.NotAfter.Add(-leafLifetime/2)) || leaf.NotAfter.Equal(ca.NotAfter)) &&
		(!now.Before(leaf.NotBefore) || leaf.NotBefore.Equal(ca.NotBefore))
}

func (l *leaves) make(name string) (*tls.Certificate, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	now, ca := l.now(), l.ca.certificate.Leaf
	template := &x509.Certificate{
		SerialNumber: serial,
		// Never before its CA, nor after it.
		NotBefore:   slices.MaxFunc([]time.Time{now.Add(-leafSlack), ca.NotBefore}, time.Time.Compare),
		NotAfter:    slices.MinFunc([]time.Time{now.Add(leafLifetime), ca.NotAfter}, time.Time.Compare),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	signer := l.ca.certificate
	der, err := x509.CreateCertificate(rand.Reader, template, signer.Leaf, &l.key.PublicKey, signer.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %q: %w", name, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back the certificate for %q: %w", name, err)
	}
	leaf := &tls.Certificate{Certificate: append([][]byte{der}, signer.Certificate...), PrivateKey: l.key, Leaf: parsed}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byName) >= maxLeaves {
		clear(l.byName)
	}
	l.byName[name] = leaf
	return leaf, nil
}
