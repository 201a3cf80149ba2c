package testca_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/testca"
)

func mint(t *testing.T) *testca.CA {
	t.Helper()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func parse(t *testing.T, leaf *tls.Certificate) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(leaf.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestLeafVerifiesForItsNamesOnly(t *testing.T) {
	t.Parallel()
	ca := mint(t)
	leaf, err := ca.Leaf("bank.keep-proxy.test", "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, leaf)
	for _, name := range []string{"127.0.0.1", "[::1]", "localhost", "bank.keep-proxy.test", "192.0.2.7"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: ca.Pool(), DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: ca.Pool(), DNSName: "other.test"}); err == nil {
		t.Error("verified for a name that it doesn't have")
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: mint(t).Pool(), DNSName: "localhost"}); err == nil {
		t.Error("verified under another authority")
	}
}

func TestIdentifiersThatStrictClientsWant(t *testing.T) {
	t.Parallel()
	ca := mint(t)
	leaf, err := ca.Leaf()
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(leaf.Certificate[1])
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, leaf)
	if len(root.SubjectKeyId) == 0 || !bytes.Equal(cert.AuthorityKeyId, root.SubjectKeyId) {
		t.Errorf("root's key id %x, leaf's authority %x", root.SubjectKeyId, cert.AuthorityKeyId)
	}
	if !root.IsCA || !root.BasicConstraintsValid || root.KeyUsage&x509.KeyUsageCertSign == 0 {
		t.Errorf("the root may not sign: CA %t, usage %b", root.IsCA, root.KeyUsage)
	}
	if cert.IsCA || cert.KeyUsage != x509.KeyUsageDigitalSignature || len(cert.ExtKeyUsage) != 1 {
		t.Errorf("leaf: CA %t, usage %b, extended %v", cert.IsCA, cert.KeyUsage, cert.ExtKeyUsage)
	}
}

// OpenSSL's -x509_strict is what Python 3.13 switches on.
func TestStrictOpenSSLAcceptsTheLeaf(t *testing.T) {
	t.Parallel()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("no openssl here")
	}
	ca := mint(t)
	leaf, err := ca.Leaf("bank.keep-proxy.test")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rootFile, leafFile := filepath.Join(dir, "root.pem"), filepath.Join(dir, "leaf.der")
	if err := os.WriteFile(rootFile, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(leafFile, leaf.Certificate[0], 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), openssl, "verify", "-x509_strict", "-purpose", "sslserver",
		"-verify_hostname", "bank.keep-proxy.test", "-CAfile", rootFile, leafFile).CombinedOutput()
	if err != nil {
		t.Errorf("openssl: %v\n%s", err, out)
	}
}

func TestLoadOrCreateKeepsTheAuthority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := testca.LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := testca.LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.PEM(), again.PEM()) {
		t.Error("the second call minted another authority")
	}
	leaf, err := again.Leaf()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(t, leaf).Verify(x509.VerifyOptions{Roots: first.Pool(), DNSName: "localhost"}); err != nil {
		t.Errorf("a leaf of the loaded authority: %v", err)
	}
	onDisk, err := os.ReadFile(filepath.Join(dir, testca.CertFile))
	if err != nil || !bytes.Equal(onDisk, first.PEM()) {
		t.Errorf("%s does not hold the root (%v)", testca.CertFile, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*key*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("key files %v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v (%v)", info.Mode(), err)
	}
}

func TestLoadRefusesHalfAnAuthority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := testca.LoadOrCreate(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, testca.CertFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := testca.LoadOrCreate(dir); err == nil || !strings.Contains(err.Error(), testca.CertFile) {
		t.Errorf("error %v, want one that names %s", err, testca.CertFile)
	}
	if err := os.WriteFile(filepath.Join(dir, testca.CertFile), mint(t).PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := testca.LoadOrCreate(dir); err == nil || !strings.Contains(err.Error(), "private key does not match") {
		t.Errorf("error %v, want a mismatch of key and root", err)
	}
}
