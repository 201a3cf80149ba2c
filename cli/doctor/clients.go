package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// rootVariables name the files by which the common clients trust, where they don't go by
// SSL_CERT_FILE.
var rootVariables = []struct{ name, clients string }{
	{"CURL_CA_BUNDLE", "curl"}, {"REQUESTS_CA_BUNDLE", "requests"}, {"HTTPLIB2_CA_CERTS", "httplib2"},
	{"PIP_CERT", "pip"}, {"TWINE_CERT", "twine"}, {"GIT_SSL_CAINFO", "git"},
	{"AWS_CA_BUNDLE", "awscli and boto3"}, {"CARGO_HTTP_CAINFO", "cargo"}, {"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "gcloud"},
	{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "gRPC"}, {"NIX_SSL_CERT_FILE", "Nix"}, {"PERL_LWP_SSL_CA_FILE", "Perl LWP"},
	{"npm_config_cafile", "npm"}, {"BUNDLE_SSL_CA_CERT", "Bundler"}, {"COMPOSER_CAFILE", "Composer"}, {"HEX_CACERTS_PATH", "Hex"},
	{"NODE_EXTRA_CA_CERTS", "Node"}, {"DENO_CERT", "Deno"},
}

// roots wants every client's own file to trust what the proxy has shown.
func (s Sandbox) roots(shown []*x509.Certificate) Finding {
	const name = "clients' CA files"
	var unset, wrong []string
	for _, v := range rootVariables {
		file := s.Getenv(v.name)
		switch {
		case file == "":
			unset = append(unset, v.name+" ("+v.clients+")")
		case !trusts(file, shown):
			wrong = append(wrong, v.name+" ("+v.clients+")")
		}
	}
	const fix = "start the command with keep-proxy run, and leave these variables as they are"
	switch {
	case len(wrong) > 0:
		return broken(name, "their files don't trust the proxy: "+strings.Join(wrong, ", "), fix)
	case len(unset) > 0:
		return advice(name, "these aren't set, so that their clients trust the proxy only if the system does: "+strings.Join(unset, ", "), fix)
	}
	return sound(name, "each trusts the proxy")
}

// trusts reports whether a file of roots trusts a chain.
func trusts(file string, shown []*x509.Certificate) bool {
	text, err := os.ReadFile(file)
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if err != nil || len(shown) == 0 || !roots.AppendCertsFromPEM(text) {
		return false
	}
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	_, err = shown[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err == nil
}

// detours are settings of clients' own that go before the variables.
func (s Sandbox) detours(ctx context.Context, alone bool) Finding {
	const name = "clients' own settings"
	found := s.gitProxies(ctx)
	for _, in := range s.settingFiles() {
		if text, err := os.ReadFile(in.file); err == nil && proxySetting.Match(text) {
			found = append(found, in.client+": a proxy in "+in.file)
		}
	}
	found = append(found, s.clientVariables()...)
	if len(found) == 0 {
		return sound(name, "none found that go before the variables (git, kubectl, curl, npm, wget)")
	}
	const fix = "take them out, or give the command another HOME"
	if alone {
		return advice(name, "they go before the variables, so that requests may fail here: "+strings.Join(found, "; "), fix)
	}
	return broken(name, "they go before the variables, so that requests may go around the proxy: "+strings.Join(found, "; "), fix)
}

// clientVariables are those of single clients that go before the common ones, and lead elsewhere.
func (s Sandbox) clientVariables() []string {
	var found []string
	for _, v := range []struct{ client, names string }{
		{"gRPC", "grpc_proxy"}, {"cargo", "CARGO_HTTP_PROXY"}, {"pip", "PIP_PROXY"}, {"aiohttp", "ws_proxy WS_PROXY wss_proxy WSS_PROXY"},
		{"npm", "npm_config_proxy NPM_CONFIG_PROXY npm_config_https_proxy NPM_CONFIG_HTTPS_PROXY"},
	} {
		for name := range strings.FieldsSeq(v.names) {
			if value := s.Getenv(name); value != "" && value != s.Getenv("HTTPS_PROXY") {
				found = append(found, v.client+": "+name+" differs from HTTPS_PROXY")
			}
		}
	}
	for _, v := range []struct{ client, name string }{{"gRPC", "no_grpc_proxy"}, {"npm", "npm_config_noproxy"}, {"npm", "NPM_CONFIG_NOPROXY"}} {
		if s.Getenv(v.name) != "" {
			found = append(found, v.client+": "+v.name+" isn't empty")
		}
	}
	return found
}

// settingFile is a file in which a client looks for settings.
type settingFile struct{ client, file string }

// settingFiles are those of kubectl, curl, npm and wget, also where another one goes before it. Which does depends on
// the client's version, and on the folder that it is started in.
func (s Sandbox) settingFiles() []settingFile {
	home := s.Getenv("HOME")
	below := func(folder, name string) string {
		if folder == "" {
			return ""
		}
		return filepath.Join(folder, name)
	}
	var found []settingFile
	for _, file := range filepath.SplitList(cmp.Or(s.Getenv("KUBECONFIG"), below(home, ".kube/config"))) {
		found = append(found, settingFile{"kubectl", file})
	}
	for _, folder := range []string{s.Getenv("CURL_HOME"), s.Getenv("XDG_CONFIG_HOME"), home, below(home, ".config")} {
		found = append(found, settingFile{"curl", below(folder, ".curlrc")}, settingFile{"curl", below(folder, "curlrc")})
	}
	npm := cmp.Or(s.Getenv("npm_config_userconfig"), s.Getenv("NPM_CONFIG_USERCONFIG"), below(home, ".npmrc"))
	wget := cmp.Or(s.Getenv("WGETRC"), below(home, ".wgetrc"))
	return append(found, settingFile{"npm", npm}, settingFile{"npm", ".npmrc"}, settingFile{"wget", wget})
}

// proxySetting is a line that names a proxy, or exceptions from it; curl has more words for it.
var proxySetting = regexp.MustCompile(`(?m)^[\s-]*["']?[\w-]*(proxy(-url|1\.0)?|socks4a?|socks5(-hostname)?)["']?[ \t]*[=: \t]|^[ \t]*-x`)

// gitProxies are git's settings of another proxy than the run's, for all or for some servers; none without git. An
// empty one is git's way to say that there is none: that goes around, too.
func (s Sandbox) gitProxies(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--null", "--get-regexp", `^(http|remote)\..*proxy$`)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var found []string
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if name, value, ok := strings.Cut(entry, "\n"); (ok || name != "") && value != s.Getenv("HTTPS_PROXY") {
			found = append(found, "git: "+name)
		}
	}
	return found
}
