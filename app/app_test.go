package app_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/config"
	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/testca"
)

// settings load a configuration for a data folder, with the demo's bank at bank.
func settings(t *testing.T, dir, bank, caFile string) config.Config {
	t.Helper()
	file := filepath.Join(dir, "config.yaml")
	text := `proxy:
  listen: ["127.0.0.1:0"]
  upstream_ca: "` + caFile + `"
  egress: {deny_private: false}
admin: {listen: "127.0.0.1:0"}
ledger: {dir: "` + filepath.Join(dir, "state") + `", min_free: 1MiB}
connectors:
  settings:
    - connector: demo-bank
      hosts: ["` + bank + `"]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t *testing.T, c config.Config) *app.App {
	t.Helper()
	a, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	return a
}

// patience bounds every wait of these tests. It is reached only by what is broken.
const patience = 2 * time.Minute

func stop(t *testing.T, a *app.App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := a.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// opened is what POST /v1/runs answers, as far as these tests need it.
type opened struct {
	ID       string `json:"id"`
	ProxyURL string `json:"proxy_url"`
	CAPEM    string `json:"ca_pem"`
}

// openRun opens a run of an item; flags are fields that are set to true.
func openRun(t *testing.T, a *app.App, c config.Config, item string, flags ...string) (opened, *http.Client) {
	t.Helper()
	token, err := os.ReadFile(c.Admin.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{"workflow": "wf", "item": item}
	for _, name := range flags {
		fields[name] = true
	}
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, a.AdminURL()+"/v1/runs", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var o opened
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusCreated || json.Unmarshal(text, &o) != nil {
		t.Fatalf("open run: %d %s %v", resp.StatusCode, text, err)
	}
	return o, throughProxy(t, o.ProxyURL, o.CAPEM)
}

// throughProxy is a client behind a run's proxy.
func throughProxy(t *testing.T, address, caPEM string) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(caPEM))
	proxyURL, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(proxyURL), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func transfer(t *testing.T, c *http.Client, base, reference string) (int, string, http.Header) {
	t.Helper()
	resp, err := c.Post(base+"/transfers", "application/json", strings.NewReader(
		`{"from":"ann","to":"bob","amount":1250,"currency":"EUR","reference":"`+reference+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// bankAndSettings starts the bank and gives a configuration that reaches it.
func bankAndSettings(t *testing.T, dir string) (*fakes.Fake, config.Config) {
	t.Helper()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	caFile := filepath.Join(dir, "fakes.pem")
	if err := os.WriteFile(caFile, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	bank, err := fakes.Start(fakes.Options{API: "bank", Log: filepath.Join(dir, "bank.log"), CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bank.Close() })
	return bank, settings(t, dir, strings.TrimPrefix(bank.URL(), "https://"), caFile)
}

func TestALostAcknowledgementMovesTheMoneyOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bank, c := bankAndSettings(t, dir)
	base := bank.URL()
	a := start(t, c)
	if err := bank.ArmNamed("commit-close"); err != nil {
		t.Fatal(err)
	}

	run, client := openRun(t, a, c, "a")
	status, first, header := transfer(t, client, base, "R-1")
	if status != http.StatusCreated || header.Get("Keep-State") != "applied" {
		t.Errorf("got %d %s %v", status, first, header)
	}
	stop(t, a)

	again := start(t, c)
	_, client = openRun(t, again, c, "b")
	if status, _, _ := transfer(t, client, base, "R-2"); status != http.StatusCreated {
		t.Errorf("another item: %d", status)
	}
	if run.ID == "" {
		t.Error("the run has no id")
	}
	tally, err := bank.Tally()
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"R-1", "R-2"} {
		if n := tally.Effects("transfer:" + reference); n != 1 {
			t.Errorf("%s: the money moved %d times", reference, n)
		}
	}
}
