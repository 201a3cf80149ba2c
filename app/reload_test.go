package app_test

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/config"
)

const reloadable = `apiVersion: keep/v1
connector: things
version: 1
hosts: [things.test]
reads: safe-methods
operations:
  - name: make
    match: {method: POST, path: /things}
    effect: EFFECT
`

func TestConnectorsAreReloadedAllOrNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "connectors")
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("things.yaml", strings.Replace(reloadable, "EFFECT", "read", 1))
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	c.Proxy.UpstreamCA, c.Connectors.Dirs = "", []string{folder}
	next, broken := c, error(nil)
	a, err := app.New(t.Context(), app.Options{
		Config: c, Log: zerolog.Nop(), Version: "test", Load: func() (config.Config, error) { return next, broken },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	metric := func() string {
		t.Helper()
		resp, err := (&http.Client{}).Get(a.AdminURL() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if build := `keep_build_info{goversion="` + runtime.Version() + `",version="test"} 1`; !strings.Contains(string(text), build) {
			t.Errorf("the metrics lack %s", build)
		}
		_, value, _ := strings.Cut(string(text), "\nkeep_reload_failed ")
		return value[:1]
	}

	write("things.yaml", strings.Replace(reloadable, "EFFECT", "deny", 1))
	write("broken.yaml", "apiVersion: keep/v1\n")
	if _, err := a.Reload(t.Context(), "test"); err == nil || !strings.Contains(err.Error(), "broken.yaml") || metric() != "1" {
		t.Errorf("a broken file: %v", err)
	} else if strings.Contains(err.Error(), "warning") {
		t.Errorf("what kept it from loading stands behind advice: %v", err) // The bundled connectors have some.
	}
	if err := os.Remove(filepath.Join(folder, "broken.yaml")); err != nil {
		t.Fatal(err)
	}
	broken = errors.New("no such key")
	if _, err := a.Reload(t.Context(), "test"); err == nil || metric() != "1" {
		t.Errorf("a broken configuration: %v", err)
	}
	broken = nil
	next.Proxy.MaxBody++
	next.Log.Level = config.LevelWarn // Nothing waits for it.
	next.Admin.Listen = "127.0.0.1:2"
	out, err := a.Reload(t.Context(), "test")
	if err != nil || !slices.Equal(out.Connectors, []string{"things"}) || metric() != "0" {
		t.Errorf("reloaded %q, %v", out.Connectors, err)
	}
	if !slices.Equal(out.Waiting, []string{"proxy.max_body", "admin.listen"}) {
		t.Errorf("waiting: %q", out.Waiting)
	}
	if out, err = a.Reload(t.Context(), "test"); err != nil || len(out.Connectors) != 0 {
		t.Errorf("nothing changed: %q, %v", out.Connectors, err)
	}
	next.Isolate = config.Isolate{Reach: []string{"db.test:5432"}, Required: true}
	if out, err = a.Reload(t.Context(), "test"); err != nil || slices.Contains(out.Waiting, "isolate.required") {
		t.Errorf("what each run reads for itself: waiting %q, %v", out.Waiting, err)
	}
	next.Isolate.Reach = append(next.Isolate.Reach, "things.test:443")
	if _, err = a.Reload(t.Context(), "test"); err == nil || !strings.Contains(err.Error(), "isolate.reach[1]") {
		t.Errorf("a connector's host past the proxy: %v", err)
	}
	next.Isolate = config.Isolate{}
	// Its settings count as the connector does: by what, and how carefully, it is asked about.
	asked, err := config.ParseSecret("Bearer x")
	if err != nil {
		t.Fatal(err)
	}
	setting := config.ConnectorSettings{Connector: "things"}
	for _, change := range []func(){
		func() { setting.Overrides = map[string]config.Override{"make": {Timeout: time.Second}} },
		func() { setting.Overrides = map[string]config.Override{"make": {Timeout: time.Minute}} },
		func() { setting.Credentials = &config.Credentials{Header: "Authorization", Value: asked} },
	} {
		change()
		next.Connectors.Settings = append(slices.Clip(c.Connectors.Settings), setting)
		for _, want := range [][]string{{"things"}, {}} {
			if out, err = a.Reload(t.Context(), "test"); err != nil || !slices.Equal(out.Connectors, want) {
				t.Errorf("with the settings %+v: %q, %v; want %q", setting, out.Connectors, err, want)
			}
		}
	}
	next.Connectors.Settings, next.Connectors.Dirs = c.Connectors.Settings, nil
	if out, err = a.Reload(t.Context(), "test"); err != nil || !slices.Equal(out.Connectors, []string{"things (gone)"}) {
		t.Errorf("without the folder: %q, %v", out.Connectors, err)
	}
}

// A blind tunnel that is open when a reload makes its host a connector's is cut.
func TestAReloadUncoversABlindTunnel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close() })
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	c.Proxy.UpstreamCA, c.Proxy.Passthrough = "", []string{there.Addr().String()}
	next := c
	a, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop(), Version: "test", Load: func() (config.Config, error) { return next, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	run, _ := openRun(t, a, c, "a")
	proxyURL, err := url.Parse(run.ProxyURL)
	if err != nil {
		t.Fatal(err)
	}
	tunnel, err := net.Dial("tcp", proxyURL.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tunnel.Close() })
	_, _ = fmt.Fprintf(tunnel, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Authorization: Basic %s\r\n\r\n",
		there.Addr(), base64.StdEncoding.EncodeToString([]byte(proxyURL.User.String())))
	if resp, err := http.ReadResponse(bufio.NewReader(tunnel), &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("no tunnel: %v, %v", resp, err)
	}
	next.Connectors.Settings = slices.Clone(c.Connectors.Settings)
	next.Connectors.Settings[0].Hosts = []string{there.Addr().String()}
	if _, err := a.Reload(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	_ = tunnel.SetReadDeadline(time.Now().Add(patience))
	if _, err := tunnel.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the tunnel is still open: %v", err)
	}
}
