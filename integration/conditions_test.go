package integration

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fakes/script"
)

func TestAFullDiskTakesNoMutation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	w.stop()
	w.settings.MinFree = "100000TiB"
	w.start()
	// Opening a run is no mutation, and neither are reads and replays.
	run, err := w.tryOpen("a", takeover)
	if err != nil {
		t.Fatalf("no run can be opened: %v", err)
	}
	got := run.transfer(w.probed, "R-2")
	got.wantRefusal("ledger-unavailable", http.StatusServiceUnavailable, "nearly full")
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if a := run.read(w.probed); a.status != http.StatusOK {
		t.Errorf("a read got %v", a)
	}
	w.probed.want("transfer:R-2", 0, 0)
	w.stop()
	w.settings.MinFree = "1MiB"
	w.start()
	w.again("a").transfer(w.probed, "R-1").wantReplay(first)
	w.again("a").transfer(w.probed, "R-2").wantApplied(http.StatusCreated)
	w.probed.want("transfer:R-1", 1, 1)
	w.probed.want("transfer:R-2", 1, 1)
}

// errText is an error's text, "" for none.
func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestATakenPortIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		take func(*settings, string)
		want []string
	}{
		"the proxy's":     {func(s *settings, at string) { s.Listen = at }, []string{"proxy.listen", "--listen", "taken by"}},
		"the admin API's": {func(s *settings, at string) { s.AdminListen = at }, []string{"admin", "--admin-listen", "taken by"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = taken.Close() }()
			w := prepare(t)
			c.take(&w.settings, taken.Addr().String())
			text := errText(w.tryStart())
			for _, want := range append(c.want, taken.Addr().String()) {
				if !strings.Contains(text, want) {
					t.Errorf("%q doesn't hold %q", text, want)
				}
			}
			// Nothing was left behind that would keep another start from it.
			w.settings.Listen, w.settings.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
			w.start()
		})
	}
}

func TestOneLedgerServesOneProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := *w
	other.app = nil
	if text := errText(other.tryStart()); !strings.Contains(text, "process") {
		t.Errorf("a second proxy on the same ledger: %q", text)
	}
	w.open("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
}

func TestALedgerWithAnotherIDRefusesToStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop()
	w.settings.LedgerID = "another"
	if text := errText(w.tryStart()); !strings.Contains(text, "another") || !strings.Contains(text, "ledger.id") && !strings.Contains(text, "id") {
		t.Errorf("started with %q", text)
	}
	w.settings.LedgerID = ""
	w.start()
}

func TestAMissingLedgerThatWasPromisedRefusesToStart(t *testing.T) {
	t.Parallel()
	w := prepare(t, func(s *settings) { s.LedgerID = "promised" })
	if text := errText(w.tryStart()); !strings.Contains(text, "promised") {
		t.Errorf("started with %q", text)
	}
}

// TestAReadOnlyLedger drops the right to write everywhere when it runs as root.
func TestAReadOnlyLedger(t *testing.T) {
	t.Parallel()
	prefix := []string{}
	if os.Geteuid() == 0 {
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			t.Skip("not run: root may write everywhere, and setpriv is not on this machine")
		}
		prefix = []string{setpriv, "--bounding-set", "-dac_override,-dac_read_search", "--"}
	}
	w := newWorld(t)
	first := w.open("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	w.stop()
	state := filepath.Join(w.settings.Dir, "state")
	withhold(t, state, 0o222)
	cmd := append(prefix, os.Args[0], "-test.run=^$") //nolint:gocritic // A list of its own.
	serve := exec.CommandContext(t.Context(), cmd[0], cmd[1:]...)
	serve.Env = append(os.Environ(), serveVar+"="+w.file)
	out, err := serve.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); !failed || !strings.Contains(string(out), state) || !strings.Contains(string(out), "permission denied") {
		t.Errorf("on a read-only ledger it ended with %v: %s", err, out)
	}
	restore(t, state)
	w.start()
	w.again("a").transfer(w.probed, "R-1").wantReplay(first)
	w.probed.want("transfer:R-1", 1, 1)
}

// withhold takes permissions from a folder and all in it, until the test ends.
func withhold(t *testing.T, dir string, bits fs.FileMode) {
	t.Helper()
	t.Cleanup(func() { restore(t, dir) })
	chmodAll(t, dir, func(m fs.FileMode) fs.FileMode { return m &^ bits })
}

func restore(t *testing.T, dir string) {
	t.Helper()
	chmodAll(t, dir, func(m fs.FileMode) fs.FileMode { return m | 0o200 })
}

func chmodAll(t *testing.T, dir string, change func(fs.FileMode) fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, change(info.Mode().Perm()))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// jumping is the system's clock with a wall clock that can be set.
type jumping struct {
	clock.Clock
	ahead atomic.Int64
}

func (j *jumping) Now() time.Time { return j.Clock.Now().Add(time.Duration(j.ahead.Load())) }

func TestAWallClockThatJumps(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{
		"ahead by ten minutes": 10 * time.Minute,
		"ahead by a day":       24 * time.Hour,
		"back by a day":        -24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wall := &jumping{Clock: clock.System()}
			w := prepare(t, func(s *settings) { s.Settle = "2m" })
			w.clock = wall
			w.start()
			w.probed.arm("commit-late")
			run := w.open("a")
			run.transfer(w.probed, "R-1").wantRefusal("unknown-outcome", 424, "goes on asking")
			wall.ahead.Store(int64(jump))
			// Settle is measured on the monotonic clock: a commit that comes inside of
			// it is found, wherever the wall clock went meanwhile.
			if m := w.mutation("a"); m.State != "needs_reconcile" {
				t.Errorf("after the jump the mutation is %s", m.State)
			}
			w.probed.Release(script.GateLate)
			w.awaitState("a", "applied")
			next := w.open("a")
			// The client's clock is none of this: it takes certificates of any day.
			next.client.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
			if a := next.transfer(w.probed, "R-1"); a.status != http.StatusCreated || a.header.Get("Keep-Replayed") != "true" {
				t.Errorf("got %v", a)
			}
			next.transfer(w.probed, "R-2").wantApplied(http.StatusCreated)
			w.probed.want("transfer:R-1", 1, 1)
			w.probed.want("transfer:R-2", 1, 1)
		})
	}
}

func TestOwnListenersAreNeverDialled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.open("a")
	for name, host := range map[string]string{
		"the admin API": w.app.AdminAddr(), "the proxy": w.app.ProxyAddr(),
		"the admin API by another name": strings.Replace(w.app.AdminAddr(), "127.0.0.1", "localhost", 1),
		"the admin API at any address":  strings.Replace(w.app.AdminAddr(), "127.0.0.1", "0.0.0.0", 1),
	} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+" over "+scheme, func(t *testing.T) {
				a := run.do(http.MethodGet, scheme+"://"+host+"/healthz", "")
				a.t = t
				a.wantRefusal("egress", http.StatusForbidden, "keep-proxy itself")
			})
		}
	}
}

func TestPrivateAddressesAreDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *settings) { s.DenyPrivate = "true" })
	run := w.open("a")
	run.read(w.probed).wantRefusal("egress", http.StatusForbidden, "not a public address")
	run.transfer(w.probed, "R-1").wantRefusal("egress", http.StatusForbidden, "not a public address")
	if m := w.mutation("a"); m.State != "failed" || m.Dispatches[0].BytesWritten != 0 {
		t.Errorf("%s after %d bytes", m.State, m.Dispatches[0].BytesWritten)
	}
	if n := w.probed.Connections(); n != 0 {
		t.Errorf("the upstream was connected to %d times", n)
	}
}

// A blind tunnel shows the upstream's own certificate; a connector's host is never
// tunnelled blindly.
func TestBlindTunnels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *settings) { s.Passthrough = `"127.0.0.1"` })
	run := w.open("a")
	tr, ok := run.client.Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	blind := tr.Clone()
	blind.TLSClientConfig = &tls.Config{RootCAs: w.ca.Pool(), MinVersion: tls.VersionTLS12}
	t.Cleanup(blind.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.quotes.URL()+"/quote/ACME", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: blind}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("got %d, %v", resp.StatusCode, err)
	}
	run.transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
}

func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	open, err := client.New(client.Config{URL: w.app.AdminURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := errors.Join(open.Healthz(ctx), open.Readyz(ctx)); err != nil {
		t.Error(err)
	}
	_, err = open.Status(ctx)
	wantProblem(t, err, "token", http.StatusUnauthorized)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.app.AdminURL()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), `keep_mutations_total{decision="dispatch",state="applied"} 1`) {
		t.Errorf("%v: no count of the mutation in\n%s", err, text)
	}
}
