package config

import (
	"path/filepath"
	"strings"
	"time"
)

// Default returns the configuration that an empty file stands for. Paths that
// default into the data folder are empty in it; [Load] fills them in.
func Default() Config {
	return Config{
		Proxy: Proxy{
			Listen:         []string{"127.0.0.1:8080"},
			RunListen:      "127.0.0.1:0",
			Unmatched:      UnmatchedDeny,
			BlockScope:     BlockWorkflow,
			MaxBody:        10 * MiB,
			MaxHead:        64 * KiB,
			MaxConnections: 20_000,
			Timeouts: Timeouts{
				Request:  5 * time.Minute,
				Dial:     10 * time.Second,
				Response: 100 * time.Second,
				Total:    10 * time.Minute,
			},
			Egress: Egress{DenyPrivate: true},
		},
		Admin:      Admin{Listen: "127.0.0.1:8081"},
		Ledger:     Ledger{Engine: EngineBadger, MinFree: 256 * MiB, Retention: Retention{Keep: 720 * time.Hour, After: AfterRefuse}},
		Connectors: Connectors{Bundled: Bundled{All: true}},
		Reconcile: Reconcile{
			Inline:              10 * time.Second,
			Base:                10 * time.Second,
			Factor:              2,
			Cap:                 10 * time.Minute,
			Jitter:              0.2,
			MaxAttempts:         8,
			MaxAge:              24 * time.Hour,
			Settle:              5 * time.Minute,
			AbsentConfirmations: 2,
			AbsentSpacing:       10 * time.Second,
		},
		Runs:           Runs{TTL: time.Hour, RetryGrace: time.Minute, RetryGraceTries: 5},
		VerifyOnReplay: VerifyOff,
		Log:            Log{Level: LevelInfo, Format: FormatAuto},
	}
}

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
