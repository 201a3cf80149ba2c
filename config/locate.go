package config

import (
	"path/filepath"
	"strings"
)

// Names of the files that are kept in the data folder unless the configuration
// says otherwise.
const (
	CACertFile   = "ca-cert.pem"
	CAKeyFile    = "ca-key.pem"
	CABundleFile = "ca-bundle.pem"
	TokenFile    = "operator.token"
)

// locate settles the data folder: ledger.dir, else $XDG_STATE_HOME/keep-proxy,
// else ~/.local/state/keep-proxy.
func locate(r *report, c *Config, environ []string) {
	if c.Ledger.Dir != "" {
		return
	}
	dir, ok := defaultDataDir(environ)
	if !ok {
		r.rejected(&fault{
			"there is no default folder, as neither XDG_STATE_HOME nor HOME is an absolute path",
			"set ledger.dir, or name a folder with --data-dir",
		}, "ledger.dir")
	}
	c.Ledger.Dir = dir
}

// defaultDataDir follows the XDG base directory specification, by which a
// relative path in a variable counts as unset.
func defaultDataDir(environ []string) (string, bool) {
	vars := map[string]string{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		vars[name] = value
	}
	if state := vars["XDG_STATE_HOME"]; filepath.IsAbs(state) {
		return filepath.Join(state, "keep-proxy"), true
	}
	if home := vars["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "keep-proxy"), true
	}
	return "", false
}

// complete fills in the paths that default into the data folder.
func complete(c *Config) {
	fill := func(path *string, name string) {
		if *path == "" {
			*path = filepath.Join(c.Ledger.Dir, name)
		}
	}
	fill(&c.Proxy.CA.CertFile, CACertFile)
	fill(&c.Proxy.CA.KeyFile, CAKeyFile)
	fill(&c.Proxy.CA.BundleOut, CABundleFile)
	fill(&c.Admin.TokenFile, TokenFile)
}
