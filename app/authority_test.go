package app

import (
	"crypto/x509"
	"testing"

	"keep-proxy/internal/fakes/testca"
)

// authority makes a CA, and the roots that trust it.
func authority(t *testing.T) (*testca.CA, *x509.CertPool) {
	t.Helper()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	return ca, roots
}
