package doctor

import (
	"crypto/x509"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/testca"
)

// shown is what a proxy with this CA shows, and a file that trusts it.
func shown(t *testing.T) (chain []*x509.Certificate, file string) {
	t.Helper()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Leaf(probeHost)
	if err != nil {
		t.Fatal(err)
	}
	for _, der := range leaf.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, c)
	}
	file = filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return chain, file
}

func TestEachClientsOwnFileIsLookedAt(t *testing.T) {
	t.Parallel()
	chain, ours := shown(t)
	_, other := shown(t)
	whole := map[string]string{}
	for _, v := range rootVariables {
		whole[v.name] = ours
	}
	for name, c := range map[string]struct {
		variable, value string
		verdict         Verdict
		says            string
	}{
		"all trust the proxy":      {"", "", Sound, "each trusts"},
		"git trusts another":       {"GIT_SSL_CAINFO", other, Broken, "GIT_SSL_CAINFO (git)"},
		"awscli's file isn't here": {"AWS_CA_BUNDLE", other + "-not", Broken, "AWS_CA_BUNDLE (awscli and boto3)"},
		"Node isn't told":          {"NODE_EXTRA_CA_CERTS", "", Advice, "NODE_EXTRA_CA_CERTS (Node)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := maps.Clone(whole)
			env[c.variable] = c.value
			got := Sandbox{Getenv: func(name string) string { return env[name] }}.roots(chain)
			if got.Verdict != c.verdict || !strings.Contains(got.Detail, c.says) {
				t.Errorf("found %+v, want %s: %s", got, c.verdict, c.says)
			}
		})
	}
	if got := (Sandbox{Getenv: func(string) string { return ours }}).roots(nil); got.Verdict != Broken {
		t.Errorf("nothing was shown, and it is %s", got.Verdict)
	}
}

func TestSettingsThatGoBeforeTheVariablesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		verdict    Verdict
		says       string
	}{
		"nothing":                     {".curlrc", "silent\n", Sound, "none found"},
		"a proxy of curl's":           {".curlrc", "silent\nproxy = http://a:1\n", Broken, "curl: a proxy in"},
		"an exception of curl's":      {".curlrc", "--noproxy bank.test\n", Broken, "curl: a proxy in"},
		"curl's short form":           {".curlrc", "silent\n-x 127.0.0.1:1\n", Broken, "curl: a proxy in"},
		"curl's other kind":           {".curlrc", "socks5-hostname = a:1\n", Broken, "curl: a proxy in"},
		"curl's other place":          {".config/curlrc", "proxy = http://a:1\n", Broken, "curl: a proxy in"},
		"a cluster as JSON":           {".kube/config", "{\n  \"proxy-url\": \"http://a:1\"\n}", Broken, "kubectl: "},
		"a comment":                   {".curlrc", "# proxy = http://a:1\n", Sound, "none found"},
		"a proxy of npm's":            {".npmrc", "https-proxy=http://a:1\n", Broken, "npm: a proxy in"},
		"a word inside another value": {".npmrc", "registry=https://proxy.test/npm\n", Sound, "none found"},
		"no proxy for wget":           {".wgetrc", "use_proxy = off\n", Broken, "wget: a proxy in"},
		"a cluster by another way":    {".kube/config", "clusters:\n- cluster:\n    proxy-url: http://a:1\n", Broken, "kubectl: "},
		"a cluster":                   {".kube/config", "clusters:\n- cluster:\n    server: https://a:1\n", Sound, "none found"},
		"a proxy of git's":            {".gitconfig", "[http]\n\tproxy = http://a:1\n", Broken, "git: http.proxy"},
		"no proxy for one server":     {".gitconfig", "[http \"https://bank.test\"]\n\tproxy =\n", Broken, "git: http.https://bank.test.proxy"},
		"the same proxy":              {".gitconfig", "[http]\n\tproxy = http://run:token@ours:1\n", Sound, "none found"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if _, err := exec.LookPath("git"); err != nil && c.file == ".gitconfig" {
				t.Skip("no git here")
			}
			file := filepath.Join(home, c.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
			t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
			env := map[string]string{"HOME": home, "HTTPS_PROXY": "http://run:token@ours:1"}
			got := Sandbox{Getenv: func(name string) string { return env[name] }}.detours(t.Context(), false)
			if got.Verdict != c.verdict || !strings.Contains(got.Detail, c.says) {
				t.Errorf("found %+v, want %s: %s", got, c.verdict, c.says)
			}
		})
	}
}

func TestVariablesOfSingleClientsThatLeadElsewhereAreFound(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	const ours = "http://run:token@ours:1"
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, ".curlrc")
	if err := os.WriteFile(elsewhere, []byte("noproxy = bank.test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		variable, value string
		verdict         Verdict
		says            string
	}{
		"the same proxy":         {"grpc_proxy", ours, Sound, "none found"},
		"none":                   {"npm_config_noproxy", "", Sound, "none found"},
		"another of gRPC's":      {"grpc_proxy", "http://a:1", Broken, "gRPC: grpc_proxy differs"},
		"another of npm's":       {"NPM_CONFIG_HTTPS_PROXY", "http://a:1", Broken, "npm: NPM_CONFIG_HTTPS_PROXY differs"},
		"an exception of gRPC's": {"no_grpc_proxy", "bank.test", Broken, "gRPC: no_grpc_proxy isn't empty"},
		"a folder of curl's":     {"CURL_HOME", dir, Broken, "curl: a proxy in " + elsewhere},
		"a file of wget's":       {"WGETRC", elsewhere, Broken, "wget: a proxy in " + elsewhere},
		"a file of npm's":        {"npm_config_userconfig", elsewhere, Broken, "npm: a proxy in " + elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"HTTPS_PROXY": ours, c.variable: c.value}
			got := Sandbox{Getenv: func(name string) string { return env[name] }}.detours(t.Context(), false)
			if got.Verdict != c.verdict || !strings.Contains(got.Detail, c.says) {
				t.Errorf("found %+v, want %s: %s", got, c.verdict, c.says)
			}
		})
	}
}
