package fakes_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/control"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/testca"
)

// childMark makes this test binary behave as a fake.
const childMark = "FAKES_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childMark) != "" {
		os.Exit(fakes.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func spawn(t *testing.T, args ...string) *fakes.Child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), childMark+"=1")
	child, err := fakes.Spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Stop() })
	return child
}

// spawnAt is spawn at an address of an earlier life, which another program's connection may have
// for a moment.
func spawnAt(t *testing.T, args ...string) *fakes.Child {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for tries := 1; ; tries++ {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), childMark+"=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		child, err := fakes.Spawn(cmd)
		if err == nil {
			t.Cleanup(func() { _ = child.Stop() })
			return child
		}
		if tries == 100 || !strings.Contains(stderr.String(), "address already in use") {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		<-again.C
	}
}

// client trusts the authority in the file.
func client(t *testing.T, ca *testca.CA) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

func post(t *testing.T, c *http.Client, target, body string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errorOf(err, resp.Body.Close())
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

const transfer = `{"from":"ann","to":"bob","amount":1,"currency":"EUR","reference":"R-1"}`

func TestEveryFakeStarts(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range fakes.Names() {
		f, err := fakes.Start(fakes.Options{API: name, Log: filepath.Join(t.TempDir(), "log"), CA: ca, Hosts: []string{name + ".keep-proxy.test"}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if f.API.Name() != name {
			t.Errorf("%s calls itself %s", name, f.API.Name())
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL()+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client(t, ca).Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Errorf("%s: GET / is %d over %s", name, resp.StatusCode, resp.Proto)
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := fakes.Start(fakes.Options{API: "bank", Log: filepath.Join(dir, "held")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	spoilt := filepath.Join(dir, "spoilt")
	if err := os.WriteFile(spoilt, []byte(`{"kind":"effect","details":7}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		o    fakes.Options
		want string
	}{
		{"an unknown API", fakes.Options{API: "nope"}, "there are "},
		{"settings of an API without", fakes.Options{API: "quotes", Settings: []byte(`{}`)}, "no settings"},
		{"wrong settings", fakes.Options{API: "bank", Settings: []byte(`{"x":1}`)}, "unknown field"},
		{"a log that another has", fakes.Options{API: "bank", Log: filepath.Join(dir, "held")}, "another writer"},
		{"a log that is none", fakes.Options{API: "bank", Log: spoilt}, "line 1"},
		{"a folder that isn't there", fakes.Options{API: "bank", Log: filepath.Join(dir, "no", "log")}, "no such file"},
		{"an address others can reach", fakes.Options{API: "bank", Log: filepath.Join(dir, "open"), Listen: "0.0.0.0:0"}, "only loopback"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if f, err := fakes.Start(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %v, want an error with %q", f, err, tt.want)
			}
		})
	}
}

func TestKilledFakeComesBackWithItsBooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := func(listen string) []string {
		return []string{"bank", "-log", filepath.Join(dir, "log"), "-ca-dir", dir, "-listen", listen, "-host", "bank.keep-proxy.test", "-until-eof"}
	}
	first := spawn(t, args("127.0.0.1:0")...)
	ca, err := testca.LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctl := control.New(first.Control)
	defer ctl.Close()
	if err := ctl.ArmNamed(t.Context(), "commit-silence"); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := post(t, client(t, ca), first.URL+"/transfers", transfer)
		failed <- err
	}()
	committed := func(tally oracle.Tally) bool { return tally.Effects("transfer:R-1") == 1 }
	if _, err := oracle.Wait(t.Context(), first.Log, committed); err != nil {
		t.Fatal(err)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
	second := spawnAt(t, args(first.Addr)...)
	if second.URL != first.URL || second.PID == first.PID {
		t.Errorf("second life %+v, first %+v", second.Announcement, first.Announcement)
	}
	ctl2 := control.New(second.Control)
	defer ctl2.Close()
	if books, err := ctl2.Books(t.Context()); err != nil || !strings.Contains(books, "tr_000001") {
		t.Errorf("books %q, %v", books, err)
	}
	if status, err := post(t, client(t, ca), second.URL+"/transfers", transfer); status != 201 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if err := second.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if tally, err := oracle.Read(second.Log); err != nil || !slices.Equal(tally.Twice(), []string{"transfer:R-1"}) {
		t.Errorf("twice: %v, %v", tally.Twice(), err)
	}
}

func TestSpawnTellsWhyNothingListens(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "bank")
	cmd.Env = append(os.Environ(), childMark+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if _, err := fakes.Spawn(cmd); err == nil || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("error %v, want the child's exit status", err)
	}
	if !strings.Contains(stderr.String(), "-log is required") {
		t.Errorf("the child said %q", stderr.String())
	}
}

func TestMainRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"nothing", nil, 2, "name an API first"},
		{"no log", []string{"bank"}, 2, "-log is required"},
		{"words after the flags", []string{"bank", "-log", "x", "y"}, 2, `["y"]`},
		{"an unknown flag", []string{"bank", "-lgo", "x"}, 2, "lgo"},
		{"an unknown API", []string{"bnak", "-log", "x"}, 1, "no API"},
		{"a folder that isn't there", []string{"bank", "-log", "x", "-ca-dir", "/nonexistent/dir"}, 1, "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := fakes.Main(t.Context(), tt.args, strings.NewReader(""), &stdout, &stderr)
			if code != tt.code || !strings.Contains(stderr.String(), tt.want) || stdout.Len() > 0 {
				t.Errorf("code %d, said %q, printed %q; want %d with %q", code, stderr.String(), stdout.String(), tt.code, tt.want)
			}
		})
	}
}

func TestMainEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	announced, line := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- fakes.Main(ctx, []string{"quotes", "-log", filepath.Join(t.TempDir(), "log"), "-no-h2"}, nil, line, io.Discard)
	}()
	var a fakes.Announcement
	if err := json.NewDecoder(announced).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if a.API != "quotes" || !strings.HasPrefix(a.URL, "http://127.0.0.1:") || a.CAFile != "" || a.PID != os.Getpid() {
		t.Errorf("announcement %+v", a)
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}
