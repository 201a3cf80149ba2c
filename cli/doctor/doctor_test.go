package doctor

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/sockets"
)

// find returns the finding of a name.
func find(t *testing.T, findings []Finding, name string) Finding {
	t.Helper()
	for _, f := range findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("nothing was found about %s: %v", name, findings)
	return Finding{}
}

func TestAFindingWithoutAVerdictFails(t *testing.T) {
	t.Parallel()
	if !Failed([]Finding{{Name: "forgotten"}}) {
		t.Error("a finding without a verdict passes")
	}
	if Failed([]Finding{sound("a", ""), advice("b", "", ""), unknown("c", "", "")}) {
		t.Error("what works fails")
	}
}

func TestInstallation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		of      Installation
		mode    os.FileMode
		about   string
		verdict Verdict
		says    string
	}{
		"a folder of ours alone":        {Installation{}, 0o700, "data folder", Sound, dir},
		"a folder that others see":      {Installation{}, 0o755, "data folder", Advice, "look into it"},
		"a folder that others change":   {Installation{}, 0o777, "data folder", Broken, "change it"},
		"too little space":              {Installation{MinFree: 1 << 62}, 0o700, "free space", Broken, "mutations are refused"},
		"syncs":                         {Installation{}, 0o700, "syncing", Sound, "a mutation waits for two"},
		"a ledger without an id":        {Installation{}, 0o700, "ledger.id", Advice, "first start"},
		"a mark beside the ledger":      {Installation{HighWaterFile: filepath.Join(dir, "mark")}, 0o700, "ledger.high_water_file", Advice, "together"},
		"a mark elsewhere":              {Installation{HighWaterFile: "/elsewhere/mark"}, 0o700, "ledger.high_water_file", Sound, "/elsewhere/mark"},
		"a token that others read":      {Installation{TokenFile: file("open", 0o644)}, 0o700, "operator's token", Broken, "others can read it"},
		"a token of ours":               {Installation{TokenFile: file("ours", 0o600)}, 0o700, "operator's token", Advice, "its own unknowns"},
		"no token yet":                  {Installation{TokenFile: filepath.Join(dir, "none")}, 0o700, "operator's token", Unknown, "none yet"},
		"a CA that is none":             {Installation{CertFile: file("cert", 0o600), KeyFile: file("key", 0o600)}, 0o700, "CA", Broken, "PEM"},
		"more connections than allowed": {Installation{Descriptors: 1 << 62}, 0o700, "open files", Advice, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			of := c.of
			of.Dir = dir
			if err := os.Chmod(dir, c.mode); err != nil {
				t.Fatal(err)
			}
			got := find(t, of.Examine(), c.about)
			if got.Verdict != c.verdict || !strings.Contains(got.Detail, c.says) || (got.Fix == "") != (got.Verdict == Sound) {
				t.Errorf("found %+v, want %s: %s", got, c.verdict, c.says)
			}
		})
	}
	left, err := filepath.Glob(filepath.Join(dir, ".doctor-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A commit is durable once the file with the mark is synced, wherever that is.
func TestAMarkThatIsKeptInMemoryIsBroken(t *testing.T) {
	t.Parallel()
	memory, err := os.MkdirTemp("/dev/shm", "keep-proxy-doctor-") //nolint:usetesting // t.TempDir is on a disk.
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(memory) })
	if _, bad, err := fileSystem(memory); err != nil || !bad {
		t.Skip("this machine's memory isn't known as such")
	}
	of := Installation{Dir: t.TempDir(), HighWaterFile: filepath.Join(memory, "mark")}
	got := find(t, of.Examine(), "ledger.high_water_file")
	if got.Verdict != Broken || !strings.Contains(got.Detail, memory) || !strings.Contains(got.Detail, "lives in memory") || got.Fix == "" {
		t.Errorf("found %+v", got)
	}
}

func TestAMissingFolderIsUnknown(t *testing.T) {
	t.Parallel()
	findings := Installation{Dir: filepath.Join(t.TempDir(), "none")}.Examine()
	if got := find(t, findings, "data folder"); got.Verdict != Unknown || Failed(findings[:1]) {
		t.Errorf("found %+v", got)
	}
}

func TestSandbox(t *testing.T) {
	t.Parallel()
	open, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = open.Close() })
	gone := sockets.Deaf(t)
	own := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(own, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env     map[string]string
		about   string
		verdict Verdict
		says    string
	}{
		"no variables":            {map[string]string{}, "variables", Broken, "isn't set"},
		"one spelling is missing": {map[string]string{"HTTPS_PROXY": "http://a:1", "HTTP_PROXY": "http://a:1", "http_proxy": "http://a:1"}, "variables", Broken, "https_proxy differs"},
		"an exception":            {proxied("http://a:1", "no_proxy", "bank.test"), "variables", Broken, "no_proxy isn't empty"},
		"nobody listens":          {proxied("http://" + gone), "proxy", Broken, "refused"},
		"a way around":            {proxied("http://" + gone), "around to " + open.Addr().String(), Broken, "without the proxy"},
		"no way around":           {proxied("http://" + gone), "around to " + gone, Sound, "no connection"},
		"a token in reach":        {proxied("http://" + gone), "operator's token", Broken, "can be read"},
		"an API in reach":         {proxied("http://" + gone), "admin API", Advice, "can be reached"},
		"a token that is handed":  {proxied("http://" + gone), "token of the environment", Advice, "role host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Sandbox{
				Getenv:     func(name string) string { return c.env[name] },
				Targets:    []string{open.Addr().String(), gone},
				TokenFiles: []string{own}, HostToken: own, Admin: "http://" + open.Addr().String(),
			}
			if got := find(t, s.Examine(t.Context()), c.about); got.Verdict != c.verdict || !strings.Contains(got.Detail, c.says) {
				t.Errorf("found %+v, want %s: %s", got, c.verdict, c.says)
			}
		})
	}
}

// Nothing gets out of a network whose only interface is loopback, whoever takes the connections in it.
func TestANetworkOfLoopbackAloneLeadsNowhere(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	lo, tunnel, eth := net.Interface{Flags: net.FlagUp | net.FlagLoopback}, net.Interface{Flags: net.FlagPointToPoint}, net.Interface{Flags: net.FlagUp}
	examine := func(failure error, interfaces ...net.Interface) []Finding {
		env := proxied("http://"+sockets.Deaf(t), "PIP_PROXY", "http://other:1")
		return Sandbox{
			Getenv: func(name string) string { return env[name] }, Targets: []string{taken.Addr().String()},
			Interfaces: func() ([]net.Interface, error) { return interfaces, failure },
			Admin:      sockets.Deaf(t), AdminGuessed: true,
		}.Examine(t.Context())
	}
	target := "around to " + taken.Addr().String()
	for _, all := range [][]net.Interface{{lo}, {lo, tunnel}} {
		found := examine(nil, all...)
		for name, want := range map[string]Verdict{around: Sound, target: Sound, "admin API": Sound, "clients' own settings": Advice} {
			if got := find(t, found, name); got.Verdict != want {
				t.Errorf("of %v: %+v, want %s", all, got, want)
			}
		}
	}
	for _, found := range [][]Finding{examine(nil, lo, eth), examine(nil), examine(errors.New("not permitted"), lo)} {
		if got := find(t, found, target); got.Verdict != Broken {
			t.Errorf("in a network that leads out: %+v", got)
		}
	}
}

// What wasn't looked at is not called sound.
func TestWhatASandboxDoesNotShowIsUnknown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "admin.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	env := proxied("http://127.0.0.1:1")
	base := Sandbox{Getenv: func(name string) string { return env[name] }, TokenFiles: []string{filepath.Join(dir, "none")}}
	lost := base
	lost.Unknown = errors.New("config.yaml: permission denied")
	reached, away := base, base
	reached.Admin, away.Admin = "unix:"+socket, "unix:"+socket+"-none"
	guessed := away
	guessed.AdminGuessed = true
	for name, c := range map[string]struct {
		of      Sandbox
		about   string
		verdict Verdict
		says    string
	}{
		"a token that isn't here":            {base, "operator's token", Unknown, "if it is where the proxy keeps"},
		"a configuration that can't be read": {lost, "operator's token", Unknown, "permission denied"},
		"a socket that can be reached":       {reached, "admin API", Advice, "can be reached"},
		"a socket that isn't here":           {away, "admin API", Sound, "can't be reached"},
		"an address that nobody named":       {guessed, "admin API", Unknown, "isn't known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := find(t, c.of.Examine(t.Context()), c.about); got.Verdict != c.verdict || !strings.Contains(got.Detail, c.says) {
				t.Errorf("found %+v, want %s: %s", got, c.verdict, c.says)
			}
		})
	}
}

// proxied is an environment with a proxy in every spelling, and more.
func proxied(proxy string, more ...string) map[string]string {
	env := map[string]string{"HTTPS_PROXY": proxy, "https_proxy": proxy, "HTTP_PROXY": proxy, "http_proxy": proxy}
	for i := 0; i < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return env
}
