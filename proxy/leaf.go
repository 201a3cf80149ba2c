package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

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
	if leaf != nil && lasts(leaf.Leaf, l.now()) {
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
// connection starts on one that is about to end; and where the clock was ahead when it was made,
// or nobody would trust it until that time has come.
func lasts(leaf *x509.Certificate, now time.Time) bool {
	return now.Before(leaf.NotAfter.Add(-leafLifetime/2)) && !now.Before(leaf.NotBefore)
}

func (l *leaves) make(name string) (*tls.Certificate, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	now := l.now()
	template := &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    now.Add(-clockSlack),
		NotAfter:     now.Add(leafLifetime - clockSlack),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
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
