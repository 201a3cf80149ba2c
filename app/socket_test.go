package app_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/internal/fakes"
)

// wantBooked holds what the bank itself counted.
func wantBooked(t *testing.T, bank *fakes.Fake, identity string, effects, sends int) {
	t.Helper()
	tally, err := bank.Tally()
	if err != nil {
		t.Fatal(err)
	}
	if tally.Effects(identity) != effects || tally.Sends(identity) != sends {
		t.Errorf("%s took effect %d times and was sent %d times, want %d and %d", identity, tally.Effects(identity), tally.Sends(identity), effects, sends)
	}
}

// overSocket makes a client of a run connect to the proxy's socket.
func overSocket(c *http.Client, path string) {
	c.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}

// The proxy listens at a socket as it does at a port: for reads and mutations, and asking
// for credentials.
func TestRequestsOverTheProxysSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bank, c := bankAndSettings(t, dir)
	path := filepath.Join(dir, "p.sock")
	c.Proxy.Listen = append(c.Proxy.Listen, "unix:"+path)
	a := start(t, c)
	o, client := openRun(t, a, c, "a")
	overSocket(client, path)
	if status, text, header := transfer(t, client, bank.URL(), "R-1"); status != http.StatusCreated || header.Get("Keep-State") != "applied" {
		t.Errorf("a mutation: %d %s", status, text)
	}
	resp, err := client.Get(bank.URL() + "/transfers?reference=R-1")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Keep-Mutation") != "" {
		t.Errorf("a read: %d %v", resp.StatusCode, resp.Header)
	}
	stranger := throughProxy(t, "http://run:no-token@"+a.ProxyAddr(), o.CAPEM)
	overSocket(stranger, path)
	if _, err := stranger.Get(bank.URL() + "/transfers"); err == nil || !strings.Contains(err.Error(), "Proxy Authentication Required") {
		t.Errorf("with a wrong token: %v", err)
	}
	// A program that stops takes its socket along.
	stop(t, a)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket after the stop: %v", err)
	}
	wantBooked(t, bank, "transfer:R-1", 1, 1)
}

func TestCurlOverTheProxysSocket(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("not run: curl isn't installed")
	}
	dir := t.TempDir()
	bank, c := bankAndSettings(t, dir)
	path := filepath.Join(dir, "p.sock")
	c.Proxy.Listen = append(c.Proxy.Listen, "unix:"+path)
	o, _ := openRun(t, start(t, c), c, "a")
	proxyURL, err := url.Parse(o.ProxyURL)
	if err != nil {
		t.Fatal(err)
	}
	// curl takes a socket for the server's own, with --proxy too: it is told to ask as one
	// asks a proxy (RFC 9112 §3.2.2).
	host := strings.TrimPrefix(bank.URL(), "https://")
	cmd := exec.CommandContext(t.Context(), curl, "-q", "-sS", "--unix-socket", path, "--noproxy", "*", "--request-target", bank.URL()+"/transfers",
		"-H", "Proxy-Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(proxyURL.User.String())), "-w", "\n%{http_code}",
		"-H", "Content-Type: application/json", "-d", `{"from":"ann","to":"bob","amount":1,"currency":"EUR","reference":"C-1"}`, "http://"+host)
	cmd.Env = []string{"HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "\n201") {
		t.Errorf("%v: %s", err, out)
	}
	wantBooked(t, bank, "transfer:C-1", 1, 1)
}

// A program that was killed leaves its socket behind: the next one takes its place. What
// somebody listens on, and what is no socket, is left alone.
func TestASocketThatWasLeftBehindIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bank, c := bankAndSettings(t, dir)
	path := filepath.Join(dir, "p.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	c.Proxy.Listen = append(c.Proxy.Listen, "unix:"+path)
	refuses := func(why string) {
		t.Helper()
		a, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop(), Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		defer stop(t, a)
		if err := a.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "proxy.listen unix:"+path+": ") || !strings.Contains(err.Error(), why) {
			t.Errorf("started with %v, want %q", err, why)
		}
	}
	refuses("another program listens there")
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the socket in use: %v", err)
	}
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	a := start(t, c)
	_, client := openRun(t, a, c, "a")
	overSocket(client, path)
	if status, text, _ := transfer(t, client, bank.URL(), "S-1"); status != http.StatusCreated {
		t.Errorf("over the new socket: %d %s", status, text)
	}
	stop(t, a)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses("in the way and no socket")
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file in the way: %q, %v", text, err)
	}
	wantBooked(t, bank, "transfer:S-1", 1, 1)
}
