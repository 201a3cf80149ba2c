package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/strictyaml"
)

// home is an environment in which the default data folder exists by name.
var home = []string{"HOME=/home/op"}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keep.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// problems loads text as a file and returns the problems, one string each,
// without the folder of the file.
func problems(t *testing.T, o Options) []string {
	t.Helper()
	_, err := Load(o)
	if err == nil {
		return nil
	}
	var all *Error
	if !errors.As(err, &all) {
		t.Fatalf("Load returned a %T, not an *Error: %v", err, err)
	}
	dir := filepath.Dir(o.File) + "/"
	return strings.Split(strings.ReplaceAll(all.Error(), dir, ""), "\n")
}

func TestLoadOfNothingGivesTheDefaultsWithCompletePaths(t *testing.T) {
	t.Parallel()
	got, err := Load(Options{Environ: home})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Ledger.Dir = "/home/op/.local/state/keep-proxy"
	want.Proxy.CA.CertFile = want.Ledger.Dir + "/ca-cert.pem"
	want.Proxy.CA.KeyFile = want.Ledger.Dir + "/ca-key.pem"
	want.Proxy.CA.BundleOut = want.Ledger.Dir + "/ca-bundle.pem"
	want.Admin.TokenFile = want.Ledger.Dir + "/operator.token"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Load gave\n%+v\nwant\n%+v", got, want)
	}
}

func TestEachSourceWinsOverTheOneBefore(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, "proxy:\n  listen: [127.0.0.1:1, 127.0.0.1:2]\n  hold: 1s\nlog: {level: warn, format: json}\nruns: {ttl: 2h}\n")
	got, err := Load(Options{
		File:    file,
		Environ: append([]string{"KEEP_PROXY_LISTEN=127.0.0.1:3, 127.0.0.1:4", "KEEP_LOG_LEVEL=debug", "KEEP_RUNS_TTL="}, home...),
		Flags:   []Flag{{Name: "listen", Key: "proxy.listen", Values: []string{"127.0.0.1:5"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	check("a flag wins over all", got.Proxy.Listen, []string{"127.0.0.1:5"})
	check("the environment wins over the file", got.Log.Level, LevelDebug)
	check("an empty variable is an unset one", got.Runs.TTL, 2*time.Hour)
	check("the file wins over the default", got.Log.Format, FormatJSON)
	check("the file sets its own", got.Proxy.Hold, time.Second)
	check("the default stays where nothing is said", got.Runs.RetryGraceTries, 5)
}

func TestListsAreReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, "proxy: {passthrough: [a.example, b.example]}\n")
	got, err := Load(Options{File: file, Environ: append([]string{"KEEP_PROXY_PASSTHROUGH=c.example"}, home...)})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"c.example"}; !reflect.DeepEqual(got.Proxy.Passthrough, want) {
		t.Errorf("passthrough = %q, want %q", got.Proxy.Passthrough, want)
	}
}

func TestEveryProblemOfEverySourceIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, "prxy: {}\nproxy:\n  hold: 10\n  max_body: tenMiB\n")
	got := problems(t, Options{
		File:    file,
		Environ: append([]string{"KEEP_LOG_LEVLE=debug", "KEEP_RUNS_TTL=5"}, home...),
		Flags:   []Flag{{Name: "admin-listen", Key: "admin.listen", Values: []string{"0.0.0.0:8081"}}},
	})
	want := []string{
		`keep.yaml:1:1: prxy: unknown key; did you mean proxy?`,
		`keep.yaml:3:9: proxy.hold = "10": a duration needs a unit; write 10s for seconds, or use ms, m or h`,
		`keep.yaml:4:13: proxy.max_body = "tenMiB": not a size; write a whole number and a unit, such as 64KiB or 10MiB`,
		`environment: runs.ttl = "5": a duration needs a unit; write 5s for seconds, or use ms, m or h`,
		`environment: KEEP_LOG_LEVLE: no such variable; did you mean KEEP_LOG_LEVEL?`,
		`--admin-listen: admin.listen = "0.0.0.0:8081": without TLS the admin API answers on loopback alone; use 127.0.0.1:PORT, [::1]:PORT or unix:/path, or set admin.tls`,
	}
	compareLines(t, got, want)
}

func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("problems:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestAFileThatCannotBeReadIsAProblem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	compareLines(t, problems(t, Options{File: filepath.Join(dir, "none.yaml"), Environ: home}), []string{
		"none.yaml: there is no such file; name another with --config, or leave it out to run on defaults",
	})
	large := writeConfig(t, strings.Repeat("#", strictyaml.MaxFile+1))
	compareLines(t, problems(t, Options{File: large, Environ: home}), []string{
		"keep.yaml: the file is larger than 1 MiB; split it, or name another file",
	})
}

func TestAFileOfExactlyTheBoundIsRead(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, strings.Repeat("#", strictyaml.MaxFile))
	if got := problems(t, Options{File: file, Environ: home}); got != nil {
		t.Errorf("problems: %q", got)
	}
}

func TestRelativePathsBeginWhereTheirSourceIs(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, "ledger: {dir: data}\nproxy: {upstream_ca: ../roots.pem}\n")
	got, err := Load(Options{File: file, Environ: []string{"KEEP_LEDGER_HIGH_WATER_FILE=mark"}})
	if err != nil {
		t.Fatal(err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []struct{ what, got, want string }{
		{"a path in the file", got.Ledger.Dir, filepath.Join(filepath.Dir(file), "data")},
		{"a path above the file", got.Proxy.UpstreamCA, filepath.Join(filepath.Dir(filepath.Dir(file)), "roots.pem")},
		{"a path in a variable", got.Ledger.HighWaterFile, filepath.Join(cwd, "mark")},
		{"a path that defaults into the data folder", got.Admin.TokenFile, filepath.Join(filepath.Dir(file), "data", "operator.token")},
	} {
		if path.got != path.want {
			t.Errorf("%s: got %s, want %s", path.what, path.got, path.want)
		}
	}
}

func TestDefaultDataFolder(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		environ []string
		want    string // "" when there is none
	}{
		{"the state folder is named", []string{"XDG_STATE_HOME=/state", "HOME=/home/op"}, "/state/keep-proxy"},
		{"a relative state folder counts as unset", []string{"XDG_STATE_HOME=state", "HOME=/home/op"}, "/home/op/.local/state/keep-proxy"},
		{"an empty state folder counts as unset", []string{"XDG_STATE_HOME=", "HOME=/home/op"}, "/home/op/.local/state/keep-proxy"},
		{"of a variable given twice the last counts", []string{"HOME=/a", "HOME=/b"}, "/b/.local/state/keep-proxy"},
		{"no home at all", nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Load(Options{Environ: c.environ})
			if c.want == "" {
				want := "defaults: ledger.dir: there is no default folder, as neither XDG_STATE_HOME nor HOME is an absolute path; set ledger.dir, or name a folder with --data-dir"
				if err == nil || err.Error() != want {
					t.Errorf("error %v\nwant  %s", err, want)
				}
				return
			}
			if err != nil || got.Ledger.Dir != c.want {
				t.Errorf("data folder %q, error %v; want %q", got.Ledger.Dir, err, c.want)
			}
		})
	}
}

func TestFlagsThatSetNoKeyAreRefused(t *testing.T) {
	t.Parallel()
	got := problems(t, Options{Environ: home, Flags: []Flag{
		{Name: "colour", Key: "log.colour", Values: []string{"red"}},
		{Name: "settings", Key: "connectors.settings", Values: []string{"x"}},
		{Name: "listen", Key: "proxy.listen"},
	}})
	compareLines(t, got, []string{
		"--colour: log.colour: the flag sets no key; leave it out",
		"--settings: connectors.settings: the flag sets no key; leave it out",
		"--listen: proxy.listen: the flag sets no key; leave it out",
	})
}

func TestTheLastValueOfAScalarFlagCounts(t *testing.T) {
	t.Parallel()
	got, err := Load(Options{Environ: home, Flags: []Flag{{Name: "data-dir", Key: "ledger.dir", Values: []string{"/a", "/b"}}}})
	if err != nil || got.Ledger.Dir != "/b" {
		t.Errorf("data folder %q, error %v", got.Ledger.Dir, err)
	}
}

func TestWhatCouldBeReadIsThereForThoseWhoLookFurther(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, "connectors: {dirs: [c], bundled: false}\nreconcile: {settle: soon}\n")
	c, err := Load(Options{File: file, Environ: home})
	var all *Error
	if !errors.As(err, &all) || len(all.Problems) != 1 {
		t.Fatalf("error %v, want one problem", err)
	}
	if !reflect.DeepEqual(c, Config{}) {
		t.Errorf("a configuration with a problem is given: %+v", c)
	}
	read := all.Read
	if want := filepath.Join(filepath.Dir(file), "c"); len(read.Connectors.Dirs) != 1 || read.Connectors.Dirs[0] != want || read.Connectors.Bundled.All {
		t.Errorf("read connectors %+v, want the folder %s alone", read.Connectors, want)
	}
	if read.Reconcile.Settle != Default().Reconcile.Settle {
		t.Errorf("settle is %s, want the default", read.Reconcile.Settle)
	}
}
