package demo

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/testca"
)

// world is a bank, quotes, and the variables that the script reads.
type world struct {
	bank *fakes.Fake
	env  map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	ca, err := testca.LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	start := func(api string) *fakes.Fake {
		f, err := fakes.Start(fakes.Options{API: api, Log: filepath.Join(dir, api+".log"), CA: ca})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		return f
	}
	w := &world{bank: start("bank")}
	file := filepath.Join(dir, testca.CertFile)
	w.env = map[string]string{
		"DEMO_BANK": w.bank.URL(), "DEMO_QUOTES": start("quotes").URL(),
		"DEMO_TRANSFER": `{"from":"alice","to":"bob","amount":1,"currency":"EUR","reference":"R-1"}`,
		"SSL_CERT_FILE": file, "CURL_CA_BUNDLE": file,
	}
	return w
}

// scripts are the two forms of the script: they must do and print the same.
func scripts(t *testing.T) map[string]func(t *testing.T, w *world) (out string, ok bool) {
	t.Helper()
	forms := map[string]func(t *testing.T, w *world) (string, bool){
		"the built-in client": func(t *testing.T, w *world) (string, bool) {
			t.Helper()
			var out bytes.Buffer
			err := Client(t.Context(), func(name string) string { return w.env[name] }, &out)
			return out.String(), err == nil
		},
	}
	if !installed("sh") || !installed("curl") {
		return forms
	}
	forms["sh and curl"] = func(t *testing.T, w *world) (string, bool) {
		t.Helper()
		name := filepath.Join(t.TempDir(), "pay.sh")
		if err := os.WriteFile(name, payScript, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", name)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		for name, value := range w.env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		return string(out), err == nil
	}
	return forms
}

func TestTheScriptTriesAgain(t *testing.T) {
	t.Parallel()
	for name, play := range scripts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				name      string
				faults    []string
				notice    string
				ok        bool
				transfers int
				notices   int
				says      string
			}{
				{"an answer", nil, "", true, 1, 0, `answer: {"id":"tr_000001"`},
				{"an answer that was lost", []string{"commit-close"}, "", true, 2, 0, "no good answer (try 1): "},
				{"never an answer", []string{"503", "503", "503"}, "", false, 0, 0, "no good answer (try 3): "},
				{"a notice first", nil, `{"to":"bob","text":"x","reference":"N-1"}`, true, 1, 1, `answer: {"id":"no_000001"`},
				{"a notice without an answer stops it", []string{"503", "503", "503"}, `{"to":"bob","text":"x","reference":"N-1"}`, false, 0, 0, "try 3"},
			} {
				t.Run(c.name, func(t *testing.T) {
					w := newWorld(t)
					w.env["DEMO_NOTICE"] = c.notice
					for _, fault := range c.faults {
						if err := w.bank.ArmNamed(fault); err != nil {
							t.Fatal(err)
						}
					}
					out, ok := play(t, w)
					if ok != c.ok || !strings.Contains(out, c.says) || !strings.Contains(out, `quote:  {"symbol":"ACME"`) {
						t.Errorf("success %t, want %t with %q in %q", ok, c.ok, c.says, out)
					}
					tally, err := w.bank.Tally()
					if err != nil || tally.Effects("transfer:R-1") != c.transfers || tally.Effects("notice:N-1") != c.notices {
						t.Errorf("%d transfers and %d notices (%v), want %d and %d",
							tally.Effects("transfer:R-1"), tally.Effects("notice:N-1"), err, c.transfers, c.notices)
					}
				})
			}
		})
	}
}
