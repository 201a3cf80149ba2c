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
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheCAIsMintedOnceAndItsLeavesAreTrusted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	first, err := LoadCA(cert, key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadCA(cert, key, time.Now())
	if err != nil || string(first.PEM()) != string(again.PEM()) {
		t.Errorf("another CA at the second start: %v", err)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key: %v, %v", info.Mode(), err)
	}
	made, err := newLeaves(again, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first.PEM())
	for _, name := range []string{"api.example", "127.0.0.1", "::1"} {
		leaf, err := made.get(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if cached, _ := made.get(name); cached != leaf {
			t.Errorf("%s: made twice", name)
		}
	}
}

func TestALeafIsRenewedBeforeItEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	ca, err := LoadCA(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"), now)
	if err != nil {
		t.Fatal(err)
	}
	made, err := newLeaves(ca, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	first, err := made.get("api.example")
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(leafLifetime / 2)
	second, err := made.get("api.example")
	if err != nil || second == first {
		t.Errorf("not renewed: %v", err)
	}
	// One that was made while the clock was ahead isn't valid yet, for as long as it was.
	now = now.Add(-leafLifetime)
	if third, err := made.get("api.example"); err != nil || now.Before(third.Leaf.NotBefore) {
		t.Errorf("the clock was put right, and what isn't valid yet is shown: %v", err)
	}
}

// Clients may be days behind, and some refuse a leaf that is valid when its CA isn't.
func TestALeafIsValidForLongAndOnlyWithItsCA(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Now().Truncate(time.Second).UTC()
	dir := t.TempDir()
	minted, err := LoadCA(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"), now)
	if err != nil {
		t.Fatal(err)
	}
	if from := minted.certificate.Leaf.NotBefore; !from.Equal(now.Add(-30 * day)) {
		t.Errorf("the CA begins %s back", now.Sub(from))
	}
	_, _, short := signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: "an hour"}}, nil) // From an hour ago to in an hour.
	for name, c := range map[string]struct {
		ca       *CA
		now      time.Time
		from, to time.Time
	}{
		"of the CA of now":   {minted, now, now.Add(-7 * day), now.Add(day)},
		"of a CA of an hour": {&CA{certificate: *short}, now, short.Leaf.NotBefore, short.Leaf.NotAfter},
		"before its CA":      {&CA{certificate: *short}, now.Add(-2 * time.Hour), short.Leaf.NotBefore, short.Leaf.NotAfter},
		"late in its life":   {minted, now.Add(caLifetime - time.Hour), now.Add(caLifetime - time.Hour - 7*day), now.Add(caLifetime)},
	} {
		made, err := newLeaves(c.ca, func() time.Time { return c.now })
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := made.get("api.example")
		if err != nil || !leaf.Leaf.NotBefore.Equal(c.from) || !leaf.Leaf.NotAfter.Equal(c.to) {
			t.Errorf("%s: from %s to %s, %v", name, leaf.Leaf.NotBefore, leaf.Leaf.NotAfter, err)
		}
		if again, err := made.get("api.example"); again != leaf || err != nil {
			t.Errorf("%s: made twice, %v", name, err)
		}
	}
}

// The cache is bounded in bytes as well: nothing is made for a name that is longer than any host's.
func TestNoLeafIsMadeForANameThatIsTooLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := LoadCA(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	made, err := newLeaves(ca, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("a.", maxName/2) + "a"
	if _, err := made.get(longest); err != nil {
		t.Error(err)
	}
	if _, err := made.get(longest + "a"); err == nil || len(made.byName) != 1 {
		t.Errorf("%d are kept, %v", len(made.byName), err)
	}
}

// Nor is one that has ended shown to whoever comes while another caller renews it.
func TestALeafThatHasEndedIsShownToNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, now := t.TempDir(), time.Now()
		ca, err := LoadCA(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"), now)
		if err != nil {
			t.Fatal(err)
		}
		made, err := newLeaves(ca, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		const name = "api.example"
		if _, err := made.get(name); err != nil {
			t.Fatal(err)
		}
		now = now.Add(leafLifetime)
		renew := make(chan struct{})
		go func() {
			_, _, _ = made.making.Do(name, func() (any, error) {
				<-renew
				return made.make(name)
			})
		}()
		synctest.Wait()
		shown := make(chan *tls.Certificate, 1)
		go func() {
			leaf, err := made.get(name)
			if err != nil {
				t.Error(err)
			}
			shown <- leaf
		}()
		synctest.Wait()
		close(renew)
		if leaf := <-shown; leaf == nil || !now.Before(leaf.Leaf.NotAfter) {
			t.Error("it is shown")
		}
	})
}

// A first start that was ended while it minted is gone on with, wherever that was: nobody
// has to remove what it left.
func TestMintingThatWasCutShortIsGoneOnWith(t *testing.T) {
	t.Parallel()
	write := func(name string) error { return os.WriteFile(name, []byte("-----BEGIN"), 0o600) }
	for name, cut := range map[string]func(cert, key string) error{
		"while the key was written":         func(_, key string) error { return write(pending(key)) },
		"while the certificate was written": func(cert, key string) error { return errors.Join(write(pending(key)), write(pending(cert))) },
		"before the certificate had its name": func(cert, key string) error {
			_, err := LoadCA(cert, key, time.Now())
			return errors.Join(err, os.Rename(cert, pending(cert)))
		},
		"with the certificate's name kept first": func(cert, key string) error {
			_, err := LoadCA(cert, key, time.Now())
			return errors.Join(err, os.Rename(key, pending(key)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
			if err := cut(cert, key); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadCA(cert, key, time.Now()); err != nil {
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

func TestABadCAIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(cert, key string) error
		words  string
	}{
		"the key is gone":           {func(_, key string) error { return os.Remove(key) }, "remove both"},
		"the certificate is gone":   {func(cert, _ string) error { return os.Remove(cert) }, "remove both"},
		"the certificate is no PEM": {func(cert, _ string) error { return os.WriteFile(cert, []byte("x"), 0o600) }, "remove both"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
			if _, err := LoadCA(cert, key, time.Now()); err != nil {
				t.Fatal(err)
			}
			if err := c.change(cert, key); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadCA(cert, key, time.Now()); err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("the CA has expired", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
		if _, err := LoadCA(cert, key, time.Now().Add(-2*caLifetime)); err == nil {
			t.Log("minted in the past")
		}
		if _, err := LoadCA(cert, key, time.Now()); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("got %v", err)
		}
	})
}

// signed is a certificate that the parent signs, itself for nil, in PEM with its key.
func signed(t *testing.T, template *x509.Certificate, parent *tls.Certificate) (cert, key []byte, made *tls.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	issuer, signer := template, private
	if parent != nil {
		issuer, signer = parent.Leaf, parent.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}
}

// A CA that others vouch for comes with their certificates: clients that trust the root alone are
// shown all between, and those that want a root get it.
func TestACAComesWithItsChain(t *testing.T) {
	t.Parallel()
	rootPEM, _, root := signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: "root"}}, nil)
	middlePEM, _, middle := signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: "middle"}}, root)
	ownPEM, ownKey, _ := signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: "own"}}, middle)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	whole := slices.Concat(ownPEM, middlePEM, rootPEM)
	if err := errors.Join(os.WriteFile(cert, whole, 0o600), os.WriteFile(key, ownKey, 0o600)); err != nil {
		t.Fatal(err)
	}
	ca, err := LoadCA(cert, key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if string(ca.PEM()) != string(whole) {
		t.Errorf("clients are to trust\n%s", ca.PEM())
	}
	made, err := newLeaves(ca, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := made.get("api.example")
	if err != nil {
		t.Fatal(err)
	}
	shown := x509.NewCertPool()
	for _, der := range leaf.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		shown.AddCert(c)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root.Leaf)
	if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: "api.example", Roots: roots, Intermediates: shown}); err != nil {
		t.Error(err)
	}
}
