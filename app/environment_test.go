package app_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/testca"
)

func TestARunIsGivenTheAdvertisedAddress(t *testing.T) {
	t.Parallel()
	c := plain(t)
	c.Proxy.Advertise = "proxy.sandbox.test:3128"
	a := start(t, c)
	opened, err := operatorOf(t, a).OpenRun(t.Context(), wire.OpenRun{Workflow: "w", Item: "i"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"proxy_url": opened.ProxyURL, "HTTPS_PROXY": opened.Env["HTTPS_PROXY"], "http_proxy": opened.Env["http_proxy"]} {
		if !strings.HasSuffix(got, "@proxy.sandbox.test:3128") {
			t.Errorf("%s is %q, which isn't the advertised address", name, got)
		}
	}
}

// What is reached past the proxy leaves no record, so no connector's host may be.
func TestNoRunReachesAConnectorsHostPastTheProxy(t *testing.T) {
	t.Parallel()
	api := operatorOf(t, start(t, plain(t)))
	opened, err := api.OpenRun(t.Context(), wire.OpenRun{Workflow: "w", Once: true, Reach: []string{"127.0.0.1:2"}}, "")
	if err != nil || !slices.Contains(opened.ConnectorPorts, 1) || !slices.IsSorted(opened.ConnectorPorts) {
		t.Errorf("%+v, %v; want the port of the connector's host among its ports", opened, err)
	}
	_, err = api.OpenRun(t.Context(), wire.OpenRun{Workflow: "w", Once: true, Reach: []string{"127.0.0.1:1"}}, "")
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Name() != "bad-request" || len(p.Errors) != 1 || p.Errors[0].Where != "/reach/0" {
		t.Errorf("%v, want a fault at /reach/0", err)
	}
}

// A client that trusts the bundle alone must reach hosts that are tunnelled blind, too.
func TestTheBundleHoldsTheSystemsRootsAndTheCA(t *testing.T) {
	c := plain(t)
	system := filepath.Join(t.TempDir(), "roots.pem")
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	roots := ca.PEM()
	if err := os.WriteFile(system, roots, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", system)
	start(t, c)
	bundle, err := os.ReadFile(c.Proxy.CA.BundleOut)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(c.Proxy.CA.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(own) == 0 || !bytes.Contains(bundle, own) || !bytes.Contains(bundle, roots) {
		t.Errorf("the bundle of %d bytes doesn't hold both the system's roots (%d) and the CA (%d)", len(bundle), len(roots), len(own))
	}
}

// Java reads no PEM.
func TestJavaIsGivenTheSameRoots(t *testing.T) {
	c := plain(t)
	system := filepath.Join(t.TempDir(), "roots.pem")
	t.Setenv("SSL_CERT_FILE", system)
	one, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	two, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	const none = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	file := strings.TrimSuffix(c.Proxy.CA.BundleOut, ".pem") + ".p12"
	// Authorities of one name are two.
	for _, roots := range [][]byte{
		slices.Concat([]byte("a comment\n"), one.PEM(), []byte(none), two.PEM()), // a first start
		one.PEM(), // other roots
	} {
		if err := os.WriteFile(system, roots, 0o600); err != nil {
			t.Fatal(err)
		}
		a := start(t, c)
		stop(t, a)
		own, err := os.ReadFile(c.Proxy.CA.CertFile)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := storedRoots(t, file), pemRoots(slices.Concat(roots, own)); !slices.Equal(got, want) {
			t.Errorf("the trust store holds %d certificates, not the %d of the bundle", len(got), len(want))
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	stop(t, start(t, c))
	storedRoots(t, file)
}

// storedRoots are the certificates of a trust store.
func storedRoots(t *testing.T, file string) (all []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := pkcs12.DecodeTrustStore(content, "changeit")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range roots {
		all = append(all, string(c.Raw))
	}
	return all
}

// pemRoots are the certificates of a bundle.
func pemRoots(text []byte) (all []string) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if len(block.Bytes) > 3 {
			all = append(all, string(block.Bytes))
		}
	}
	return all
}

// A shell that has the variables of env takes the bundle for the system's roots.
func TestABundleMadeFromItselfIsTheSame(t *testing.T) {
	c := plain(t)
	stop(t, start(t, c))
	first, err := os.ReadFile(c.Proxy.CA.BundleOut)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", c.Proxy.CA.BundleOut)
	for range 2 {
		stop(t, start(t, c))
		if again, err := os.ReadFile(c.Proxy.CA.BundleOut); err != nil || !bytes.Equal(again, first) {
			t.Fatalf("it has %d bytes and not %d any more, %v", len(again), len(first), err)
		}
	}
}
