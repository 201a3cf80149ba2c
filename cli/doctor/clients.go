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
func (s Sandbox) detours(ctx context.Context) Finding {
	const name = "clients' own settings"
	var found []string
	for _, setting := range gitProxies(ctx) {
		if s.Getenv("HTTPS_PROXY") != setting.value {
			found = append(found, "git: "+setting.name)
		}
	}
	for _, file := range s.kubeconfigs() {
		if setsProxy(file) {
			found = append(found, "kubectl: proxy-url in "+file)
		}
	}
	for _, c := range s.settingFiles() {
		if setsProxy(c.file) {
			found = append(found, c.client+": a proxy in "+c.file)
		}
	}
	found = append(found, s.clientVariables()...)
	if len(found) == 0 {
		return sound(name, "none found that go before the variables (git, kubectl, curl, npm, wget)")
	}
	return broken(name, "they go before the variables, so that requests may go around the proxy: "+strings.Join(found, "; "),
		"take them out, or give the command another HOME")
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

// settingFiles are those of curl, npm and wget, also where another one goes before it: which
// does depends on the client's version, and on the folder that it is started in.
func (s Sandbox) settingFiles() []settingFile {
	home := s.Getenv("HOME")
	var found []settingFile
	for _, folder := range []string{s.Getenv("CURL_HOME"), s.Getenv("XDG_CONFIG_HOME"), home, below(home, ".config")} {
		for _, name := range []string{".curlrc", "curlrc"} {
			found = append(found, settingFile{"curl", below(folder, name)})
		}
	}
	npm := cmp.Or(s.Getenv("npm_config_userconfig"), s.Getenv("NPM_CONFIG_USERCONFIG"), below(home, ".npmrc"))
	wget := cmp.Or(s.Getenv("WGETRC"), below(home, ".wgetrc"))
	return append(found, settingFile{"npm", npm}, settingFile{"npm", ".npmrc"}, settingFile{"wget", wget})
}

// below is a file in a folder; none without the folder.
func below(folder, name string) string {
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, name)
}

// gitSetting is one of git's.
type gitSetting struct{ name, value string }

// gitProxies are the proxies that git is told of, for all or for some servers; none
// without git. An empty one is git's way to say that there is none: that goes around, too.
func gitProxies(ctx context.Context) []gitSetting {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--null", "--get-regexp", `^(http|remote)\..*proxy$`)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var all []gitSetting
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if name, value, ok := strings.Cut(entry, "\n"); ok || name != "" {
			all = append(all, gitSetting{name, value})
		}
	}
	return all
}

// kubeconfigs are the files in which kubectl looks.
func (s Sandbox) kubeconfigs() []string {
	if files := s.Getenv("KUBECONFIG"); files != "" {
		return filepath.SplitList(files)
	}
	return []string{filepath.Join(s.Getenv("HOME"), ".kube", "config")}
}

// proxySetting is a line that names a proxy, or exceptions from it; curl has more words for it.
var proxySetting = regexp.MustCompile(`(?m)^[\s-]*["']?[\w-]*(proxy(-url|1\.0)?|socks4a?|socks5(-hostname)?)["']?[ \t]*[=: \t]|^[ \t]*-x`)

// setsProxy reports whether a file has such a line. One that isn't there has none.
func setsProxy(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && proxySetting.Match(text)
}
