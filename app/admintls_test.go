package app_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/app"
	"keep-proxy/config"
	"keep-proxy/internal/fakes/testca"
)

// guardedApp is a program whose API is served over TLS on every interface, with a token
// of each role, and a listener for probes.
func guardedApp(t *testing.T) (*app.App, config.Config) {
	t.Helper()
	dir := t.TempDir()
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	c.Proxy.UpstreamCA = ""
	c.Admin.Listen, c.Admin.HealthListen, c.Admin.PublicURL = "0.0.0.0:0", "127.0.0.1:0", "https://keep.example/team"
	c.Admin.TLS = config.AdminTLS{CertFile: filepath.Join(dir, "tls.pem"), KeyFile: filepath.Join(dir, "tls.key")}
	writeCertificate(t, c.Admin.TLS, "admin.test")
	for _, role := range []config.TokenRole{config.TokenViewer, config.TokenHost, config.TokenOperator} {
		sum := sha256.Sum256([]byte("token of the " + string(role)))
		c.Admin.Tokens = append(c.Admin.Tokens, config.AdminToken{Name: "the " + string(role), Role: role, SHA256: hex.EncodeToString(sum[:])})
	}
	return start(t, c), c
}

// writeCertificate writes a certificate for a host in place of what is there.
func writeCertificate(t *testing.T, files config.AdminTLS, host string) {
	t.Helper()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Leaf(host)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	if err := errors.Join(
		os.WriteFile(files.CertFile, block("CERTIFICATE", leaf.Certificate[0]), 0o600),
		os.WriteFile(files.KeyFile, block("PRIVATE KEY", key), 0o600),
	); err != nil {
		t.Fatal(err)
	}
}

func as(t *testing.T, a *app.App, c config.Config, token string) *client.Client {
	t.Helper()
	made, err := client.New(client.Config{URL: a.AdminURL(), Token: token, Certificate: c.Admin.TLS.CertFile})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func TestEachRoleOverTLS(t *testing.T) {
	t.Parallel()
	a, c := guardedApp(t)
	if !strings.HasPrefix(a.AdminURL(), "https://127.0.0.1:") {
		t.Errorf("the API is at %s", a.AdminURL())
	}
	viewer, host, operator := as(t, a, c, "token of the viewer"), as(t, a, c, "token of the host"), as(t, a, c, "token of the operator")
	opened, err := host.OpenRun(t.Context(), wire.OpenRun{Workflow: "wf", Item: "one"}, "key-1")
	if err != nil {
		t.Fatalf("the host opens a run: %v", err)
	}
	if _, err := host.FinishRun(t.Context(), opened.ID, wire.FinishRun{Outcome: "failed"}); err != nil {
		t.Errorf("the host finishes it: %v", err)
	}
	item, err := viewer.Items(t.Context(), client.Filter{Workflow: "wf"})
	if err != nil || len(item.Items) != 1 {
		t.Fatalf("the viewer reads: %v %v", item, err)
	}
	decide := wire.DecideItem{Reason: "done by hand", Actor: "ann"}
	for name, refused := range map[string]func() error{
		"the viewer decides": func() error { _, err := viewer.CloseItem(t.Context(), item.Items[0].ID, decide); return err },
		"the host decides":   func() error { _, err := host.CloseItem(t.Context(), item.Items[0].ID, decide); return err },
		"the viewer opens a run": func() error {
			_, err := viewer.OpenRun(t.Context(), wire.OpenRun{Workflow: "wf", Once: true}, "k")
			return err
		},
		"the host reads questions": func() error { _, err := host.Escalations(t.Context(), client.Filter{}); return err },
	} {
		if err := refused(); !client.IsProblem(err, "role") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := as(t, a, c, "a guess").Status(t.Context()); !client.IsProblem(err, "token") {
		t.Errorf("an unknown token: %v", err)
	}
	if _, err := operator.CloseItem(t.Context(), item.Items[0].ID, decide); err != nil {
		t.Errorf("the operator decides: %v", err)
	}
}

func TestTheAPIsCertificate(t *testing.T) {
	t.Parallel()
	a, c := guardedApp(t)
	first := as(t, a, c, "token of the viewer")
	if _, err := first.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Another's certificate is no longer the one that is shown.
	other := config.AdminTLS{CertFile: filepath.Join(t.TempDir(), "other.pem"), KeyFile: filepath.Join(t.TempDir(), "other.key")}
	writeCertificate(t, other, "admin.test")
	wrong := c
	wrong.Admin.TLS = other
	if _, err := as(t, a, wrong, "token of the viewer").Status(t.Context()); err == nil || !strings.Contains(err.Error(), "isn't the admin API") {
		t.Errorf("with another certificate expected: %v", err)
	}
	// A renewed one is shown without a restart.
	writeCertificate(t, c.Admin.TLS, "a.longer.name.of.admin.test")
	if _, err := as(t, a, c, "token of the viewer").Status(t.Context()); err != nil {
		t.Errorf("after it was renewed: %v", err)
	}
	// What can't be read leaves the last in force.
	before, err := os.ReadFile(c.Admin.TLS.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	kept := config.AdminTLS{CertFile: filepath.Join(t.TempDir(), "kept.pem")}
	if err := errors.Join(os.WriteFile(kept.CertFile, before, 0o600), os.WriteFile(c.Admin.TLS.CertFile, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	stays := c
	stays.Admin.TLS.CertFile = kept.CertFile
	if _, err := as(t, a, stays, "token of the viewer").Status(t.Context()); err != nil {
		t.Errorf("while the file is broken: %v", err)
	}
	// In clear nothing is said.
	resp, err := (&http.Client{Timeout: time.Minute}).Get(strings.Replace(a.AdminURL(), "https://", "http://", 1) + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("in clear: status %d", resp.StatusCode)
	}
}

func TestHostsOfTheAPI(t *testing.T) {
	t.Parallel()
	a, _ := guardedApp(t)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	for host, want := range map[string]int{
		"admin.test": 200, "keep.example": 200, "10.1.2.3:8443": 200, "localhost": 200,
		"evil.example": 421, "sub.admin.test": 421,
	} {
		r, err := http.NewRequest(http.MethodGet, a.AdminURL()+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Host %s: %d, want %d", host, resp.StatusCode, want)
		}
	}
}

func TestProbesHaveAListenerOfTheirOwn(t *testing.T) {
	t.Parallel()
	a, _ := guardedApp(t)
	for _, c := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", "/healthz", "10.0.0.7:8082", 200}, {"GET", "/readyz", "a-pod", 200}, {"HEAD", "/healthz", "", 200},
		{"GET", "/v1/status", "", 404}, {"GET", "/metrics", "", 404}, {"GET", "/openapi.json", "", 404}, {"POST", "/healthz", "", 404},
	} {
		r, err := http.NewRequest(c.method, "http://"+a.HealthAddr()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		r.Header.Set("Authorization", "Bearer token of the operator")
		resp, err := (&http.Client{Timeout: time.Minute}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.want || c.method == "GET" && c.want == 200 && string(text) != "ok\n" {
			t.Errorf("%s %s: %d %q %v, want %d", c.method, c.path, resp.StatusCode, text, err, c.want)
		}
	}
}

// TestTheListenersOfTheAPIAreNoUpstreams asks the proxy for them.
func TestTheListenersOfTheAPIAreNoUpstreams(t *testing.T) {
	t.Parallel()
	a, c := guardedApp(t)
	opened, err := as(t, a, c, "token of the host").OpenRun(t.Context(), wire.OpenRun{Workflow: "wf", Item: "one"}, "key-1")
	if err != nil {
		t.Fatal(err)
	}
	through := throughProxy(t, opened.ProxyURL, opened.CAPEM)
	for _, address := range []string{a.HealthAddr(), a.AdminAddr()} {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := through.Get(fmt.Sprintf("http://127.0.0.1:%s/healthz", port))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusForbidden || !bytes.Contains(text, []byte("urn:keep:problem:egress")) {
			t.Errorf("%s: %d %s %v", address, resp.StatusCode, text, err)
		}
	}
}

func TestABrokenCertificateStartsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	c.Proxy.UpstreamCA = ""
	c.Admin.TLS = config.AdminTLS{CertFile: filepath.Join(dir, "tls.pem"), KeyFile: filepath.Join(dir, "tls.key")}
	if _, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop()}); err == nil || !strings.Contains(err.Error(), "admin.tls: open "+c.Admin.TLS.CertFile) {
		t.Errorf("without files: %v", err)
	}
	writeCertificate(t, c.Admin.TLS, "admin.test")
	if err := os.Chmod(c.Admin.TLS.KeyFile, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop()}); err == nil || !strings.Contains(err.Error(), "can be read by everybody") {
		t.Errorf("with a key that all can read: %v", err)
	}
}
