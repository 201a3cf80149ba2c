package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// entry is one configuration key: how it is read from each source and where it
// goes in a Config.
type entry struct {
	// path is the key in dotted form.
	path string
	// list says that one environment variable holds several values, parted by
	// commas.
	list bool
	// node reads the YAML form.
	node func(d *decoder, key string, n *yaml.Node) (any, bool)
	// texts reads the form of the environment and of flags. Nil: the key can
	// only be given in the file.
	texts func(d *decoder, key string, values []string) (any, bool)
	// get and set reach the field in a Config.
	get func(c *Config) any
	set func(c *Config, v any) error
}

// entries lists every key of this version, in the order of the documentation.
func entries() []entry {
	return slices.Concat(
		proxyEntries(), adminEntries(), ledgerEntries(), connectorEntries(), reconcileEntries(), verifyEntries(), runsEntries(), notifyEntries(),
	)
}

func verifyEntries() []entry {
	return []entry{plainEntry("verify_on_replay", readVerify, func(c *Config) *Verify { return &c.VerifyOnReplay })}
}

func proxyEntries() []entry {
	return []entry{
		listEntry("proxy.listen", readListen, func(c *Config) *[]string { return &c.Proxy.Listen }),
		textEntry("proxy.advertise", readAdvertise, func(c *Config) *string { return &c.Proxy.Advertise }),
		textEntry("proxy.run_listen", readRunListen, func(c *Config) *string { return &c.Proxy.RunListen }),
		textEntry("proxy.ca.cert_file", readPath, func(c *Config) *string { return &c.Proxy.CA.CertFile }),
		textEntry("proxy.ca.key_file", readPath, func(c *Config) *string { return &c.Proxy.CA.KeyFile }),
		textEntry("proxy.ca.bundle_out", readPath, func(c *Config) *string { return &c.Proxy.CA.BundleOut }),
		textEntry("proxy.unmanaged.workflow", readText, func(c *Config) *string { return &c.Proxy.Unmanaged.Workflow }),
		textEntry("proxy.unmanaged.item", readText, func(c *Config) *string { return &c.Proxy.Unmanaged.Item }),
		textEntry("proxy.unmatched.mutation", readUnmatched, func(c *Config) *Unmatched { return &c.Proxy.Unmatched }),
		textEntry("proxy.block_scope", readBlockScope, func(c *Config) *BlockScope { return &c.Proxy.BlockScope }),
		plainEntry("proxy.hold", readDuration, func(c *Config) *time.Duration { return &c.Proxy.Hold }),
		plainEntry("proxy.max_body", readSize, func(c *Config) *Size { return &c.Proxy.MaxBody }),
		plainEntry("proxy.max_head", readSize, func(c *Config) *Size { return &c.Proxy.MaxHead }),
		plainEntry("proxy.max_connections", readInt, func(c *Config) *int { return &c.Proxy.MaxConnections }),
		plainEntry("proxy.timeouts.request", readDuration, func(c *Config) *time.Duration { return &c.Proxy.Timeouts.Request }),
		plainEntry("proxy.timeouts.dial", readDuration, func(c *Config) *time.Duration { return &c.Proxy.Timeouts.Dial }),
		plainEntry("proxy.timeouts.response", readDuration, func(c *Config) *time.Duration { return &c.Proxy.Timeouts.Response }),
		plainEntry("proxy.timeouts.total", readDuration, func(c *Config) *time.Duration { return &c.Proxy.Timeouts.Total }),
		listEntry("proxy.passthrough", readHostPattern, func(c *Config) *[]string { return &c.Proxy.Passthrough }),
		plainEntry("proxy.egress.deny_private", readBool, func(c *Config) *bool { return &c.Proxy.Egress.DenyPrivate }),
		listEntry("proxy.egress.allow", readEgress, func(c *Config) *[]string { return &c.Proxy.Egress.Allow }),
		listEntry("proxy.egress.deny", readEgress, func(c *Config) *[]string { return &c.Proxy.Egress.Deny }),
		textEntry("proxy.upstream_ca", readPath, func(c *Config) *string { return &c.Proxy.UpstreamCA }),
		textEntry("proxy.upstream_proxy.url", readProxyURL, func(c *Config) *string { return &c.Proxy.UpstreamProxy.URL }),
		textEntry("proxy.upstream_proxy.user", readText, func(c *Config) *string { return &c.Proxy.UpstreamProxy.User }),
		textEntry("proxy.upstream_proxy.password", readOptionalSecret, func(c *Config) *Secret { return &c.Proxy.UpstreamProxy.Password }),
		listEntry("proxy.upstream_proxy.no_proxy", readEgress, func(c *Config) *[]string { return &c.Proxy.UpstreamProxy.NoProxy }),
		bind(entry{path: "proxy.client_certs", node: clientCertsNode}, func(c *Config) *[]ClientCert { return &c.Proxy.ClientCerts }),
		plainEntry("proxy.via", readBool, func(c *Config) *bool { return &c.Proxy.Via }),
	}
}

func adminEntries() []entry {
	return []entry{
		textEntry("admin.listen", readListen, func(c *Config) *string { return &c.Admin.Listen }),
		textEntry("admin.health_listen", readHealthListen, func(c *Config) *string { return &c.Admin.HealthListen }),
		textEntry("admin.public_url", readPublicURL, func(c *Config) *string { return &c.Admin.PublicURL }),
		textEntry("admin.tls.cert_file", readPath, func(c *Config) *string { return &c.Admin.TLS.CertFile }),
		textEntry("admin.tls.key_file", readPath, func(c *Config) *string { return &c.Admin.TLS.KeyFile }),
		textEntry("admin.token_file", readPath, func(c *Config) *string { return &c.Admin.TokenFile }),
		bind(entry{path: "admin.tokens", node: tokensNode}, func(c *Config) *[]AdminToken { return &c.Admin.Tokens }),
	}
}

func ledgerEntries() []entry {
	return []entry{
		textEntry("ledger.engine", readEnum([]Engine{EngineBadger}, "postgres"), func(c *Config) *Engine { return &c.Ledger.Engine }),
		textEntry("ledger.dir", readPath, func(c *Config) *string { return &c.Ledger.Dir }),
		textEntry("ledger.id", readText, func(c *Config) *string { return &c.Ledger.ID }),
		textEntry("ledger.high_water_file", readPath, func(c *Config) *string { return &c.Ledger.HighWaterFile }),
		plainEntry("ledger.min_free", readSize, func(c *Config) *Size { return &c.Ledger.MinFree }),
		plainEntry("ledger.retention.keep", readDuration, func(c *Config) *time.Duration { return &c.Ledger.Retention.Keep }),
		textEntry("ledger.retention.after", readEnum([]After{AfterRefuse, AfterForget}), func(c *Config) *After { return &c.Ledger.Retention.After }),
	}
}

func connectorEntries() []entry {
	settings := func(c *Config) *[]ConnectorSettings { return &c.Connectors.Settings }
	bundled := func(c *Config) *Bundled { return &c.Connectors.Bundled }
	return []entry{
		listEntry("connectors.dirs", readPath, func(c *Config) *[]string { return &c.Connectors.Dirs }),
		bind(entry{path: "connectors.bundled", list: true, node: bundledNode, texts: bundledTexts}, bundled),
		bind(entry{path: "connectors.settings", node: settingsNode}, settings),
	}
}

func reconcileEntries() []entry {
	return []entry{
		plainEntry("reconcile.inline", readDuration, func(c *Config) *time.Duration { return &c.Reconcile.Inline }),
		plainEntry("reconcile.base", readDuration, func(c *Config) *time.Duration { return &c.Reconcile.Base }),
		plainEntry("reconcile.factor", readNumber, func(c *Config) *float64 { return &c.Reconcile.Factor }),
		plainEntry("reconcile.cap", readDuration, func(c *Config) *time.Duration { return &c.Reconcile.Cap }),
		plainEntry("reconcile.jitter", readNumber, func(c *Config) *float64 { return &c.Reconcile.Jitter }),
		plainEntry("reconcile.max_attempts", readInt, func(c *Config) *int { return &c.Reconcile.MaxAttempts }),
		plainEntry("reconcile.max_age", readDuration, func(c *Config) *time.Duration { return &c.Reconcile.MaxAge }),
		plainEntry("reconcile.settle", readDuration, func(c *Config) *time.Duration { return &c.Reconcile.Settle }),
		plainEntry("reconcile.absent_confirmations", readInt, func(c *Config) *int { return &c.Reconcile.AbsentConfirmations }),
		plainEntry("reconcile.absent_spacing", readDuration, func(c *Config) *time.Duration { return &c.Reconcile.AbsentSpacing }),
	}
}

func runsEntries() []entry {
	levels := []LogLevel{LevelTrace, LevelDebug, LevelInfo, LevelWarn, LevelError}
	return []entry{
		plainEntry("runs.ttl", readDuration, func(c *Config) *time.Duration { return &c.Runs.TTL }),
		plainEntry("runs.retry_grace", readDuration, func(c *Config) *time.Duration { return &c.Runs.RetryGrace }),
		plainEntry("runs.retry_grace_tries", readInt, func(c *Config) *int { return &c.Runs.RetryGraceTries }),
		textEntry("log.level", readEnum(levels), func(c *Config) *LogLevel { return &c.Log.Level }),
		textEntry("log.format", readEnum([]LogFormat{FormatAuto, FormatConsole, FormatJSON}), func(c *Config) *LogFormat { return &c.Log.Format }),
	}
}

func notifyEntries() []entry {
	return []entry{
		bind(entry{path: "notify.exec", node: notifyExecNode}, func(c *Config) *[]NotifyExec { return &c.Notify.Exec }),
		bind(entry{path: "notify.webhooks", node: notifyWebhooksNode}, func(c *Config) *[]NotifyWebhook { return &c.Notify.Webhooks }),
	}
}

var readUnmatched = readEnum([]Unmatched{UnmatchedDeny, UnmatchedObserve, UnmatchedAllow})

var readBlockScope = readEnum([]BlockScope{BlockWorkflow, BlockItem, BlockMutation})

// textEntry is a key whose YAML form must be a string.
func textEntry[T any](path string, read scalar[T], at func(*Config) *T) entry {
	return scalarEntry(path, read, mustBeString, at)
}

// plainEntry is a key whose YAML form may be a number or a boolean.
func plainEntry[T any](path string, read scalar[T], at func(*Config) *T) entry {
	return scalarEntry(path, read, anyPlain, at)
}

func scalarEntry[T any](path string, read scalar[T], form scalarForm, at func(*Config) *T) entry {
	return bind(entry{
		path: path,
		node: func(d *decoder, key string, n *yaml.Node) (any, bool) {
			return readNode(d, key, n, form, read)
		},
		texts: func(d *decoder, key string, values []string) (any, bool) {
			return readOneText(d, key, values[len(values)-1], read)
		},
	}, at)
}

func listEntry(path string, read scalar[string], at func(*Config) *[]string) entry {
	return bind(entry{
		path: path,
		list: true,
		node: func(d *decoder, key string, n *yaml.Node) (any, bool) {
			return readListNode(d, key, n, read)
		},
		texts: func(d *decoder, key string, values []string) (any, bool) {
			return readListTexts(d, key, values, read)
		},
	}, at)
}

// bind gives an entry its field.
func bind[T any](e entry, at func(*Config) *T) entry {
	e.get = func(c *Config) any { return *at(c) }
	e.set = func(c *Config, v any) error {
		typed, ok := v.(T)
		if !ok {
			return fmt.Errorf("%s: merging gave a %T instead of a %T", e.path, v, *at(c))
		}
		*at(c) = typed
		return nil
	}
	return e
}

// children returns the names directly below section ("" for the top), each with
// whether a deeper section stands there.
func children(all []entry, section string) map[string]bool {
	names := map[string]bool{}
	for _, e := range all {
		rest := e.path
		if section != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(e.path, section+"."); !ok {
				continue
			}
		}
		name, _, deeper := strings.Cut(rest, ".")
		names[name] = deeper
	}
	return names
}
