package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"keep-proxy/config"
	"keep-proxy/connectors"
	"keep-proxy/internal/clock"
	"keep-proxy/rules"
	"keep-proxy/rules/lint"
)

// LoadRules reads the bundled connectors that the configuration selects and those
// of its folders. The set is nil if a finding is an error; else all are warnings. With late, bundled ones without
// settings are compiled when their hosts are first seen, and not looked at before.
func LoadRules(c config.Config, late bool) (*rules.Set, rules.Findings, error) {
	files, missing, err := ConnectorFiles(c.Connectors)
	if err != nil {
		return nil, nil, err
	}
	for i := range files {
		files[i].Late = late && files[i].Bundled != ""
	}
	settings := RuleSettings(c.Connectors)
	if len(missing) > 0 {
		settings = nil // those of connectors that are missing would be findings too
	}
	set, findings := rules.Load(files, settings, RuleDefaults(c))
	if set == nil || len(missing) > 0 {
		return nil, placed(c, append(missing, withoutUnread(files, findings)...)), nil
	}
	if reached := reachFindings(set, c.Isolate.Reach); len(reached) > 0 {
		return nil, placed(c, reached), nil
	}
	return set, placed(c, append(lint.Check(set), ageAdvice(set, c.Reconcile.MaxAge)...)), nil
}

// reachFindings are of targets past the proxy that a connector declares. A mutation there would have no record.
func reachFindings(set *rules.Set, targets []string) (found rules.Findings) {
	for i, target := range targets {
		for _, c := range set.Heads() {
			if set.Covers(c.Name, "https", target) || set.Covers(c.Name, "http", target) {
				found = append(found, rules.Finding{
					Severity: rules.SeverityError, Code: "reach", Key: fmt.Sprintf("isolate.reach[%d]", i), Value: target,
					Problem: fmt.Sprintf("%s is a host of the connector %s", target, c.Name),
					Fix:     "take it out of isolate.reach: what goes there must pass the proxy",
				})
			}
		}
	}
	return found
}

// connectorLine finds a connector's name in a file that can't be read as a whole.
var connectorLine = regexp.MustCompile(`(?m)^connector:[ \t]*["']?([a-z0-9-]+)`)

// withoutUnread drops findings that no connector has the name of some settings, where a file with errors may hold it.
// Such a finding would be gone once the file has none.
func withoutUnread(files []rules.File, findings rules.Findings) rules.Findings {
	var unread []string
	for _, f := range files {
		if !slices.ContainsFunc(findings, func(x rules.Finding) bool { return x.File == f.Name }) {
			continue
		}
		name := strings.TrimPrefix(filepath.Base(f.Name), "bundled:")
		unread = append(unread, "connectors.settings."+strings.TrimSuffix(name, filepath.Ext(name)))
		if found := connectorLine.FindSubmatch(f.Data); found != nil {
			unread = append(unread, "connectors.settings."+string(found[1]))
		}
	}
	return slices.DeleteFunc(findings, func(x rules.Finding) bool {
		return x.Code == "settings" && x.Problem == "no connector has this name" && slices.Contains(unread, x.Key)
	})
}

// placed adds to findings about the configuration where it says so, and sorts all by their places.
func placed(c config.Config, findings rules.Findings) rules.Findings {
	for i := range findings {
		f := &findings[i]
		if f.File != "" {
			continue
		}
		at := c.Place(configKey(c.Connectors, f.Key))
		f.File, f.Line, f.Column = at.Source, at.Line, at.Column
	}
	slices.SortStableFunc(findings, func(a, b rules.Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return findings
}

// configKey is the key of a finding as the configuration counts it. Rules know settings by their connector, and not
// which entry of the list they are.
func configKey(c config.Connectors, key string) string {
	rest, ok := strings.CutPrefix(key, "connectors.settings.")
	if !ok {
		return key
	}
	name, inside, found := strings.Cut(rest, ".")
	if !found {
		inside = "connector"
	}
	for i, s := range c.Settings {
		if s.Connector == name {
			return fmt.Sprintf("connectors.settings[%d].%s", i, inside)
		}
	}
	return key
}

// AccountAdvice warns of connectors that can't tell whose data is changed.
func AccountAdvice(set *rules.Set, c config.Config) rules.Findings {
	own := newCredentials(c.Connectors, set, clock.System())
	return lint.Accounts(set, func(connector string) bool {
		configured := own.byConnector[connector]
		return configured != nil && configured.Use == config.UseAlways
	})
}

// ConnectorFiles lists the connector files in force: bundled ones by name, then
// each folder's in the order of their names. Bundled ones that aren't selected can be extended all the same. What is named and isn't there is a
// finding: without it, what its rules refuse might pass.
func ConnectorFiles(c config.Connectors) ([]rules.File, rules.Findings, error) {
	bundled, err := connectors.Files()
	if err != nil {
		return nil, nil, err
	}
	var files []rules.File
	var names []string
	for _, f := range bundled {
		names = append(names, f.Name)
		files = append(files, rules.File{Name: "bundled:" + f.Name + ".yaml", Data: f.Data, Bundled: f.Name, Base: !c.Bundled.Includes(f.Name)})
	}
	var missing rules.Findings
	for i, name := range c.Bundled.Names {
		if !slices.Contains(names, name) {
			missing = append(missing, absent("bundled", i, name, "no bundled connector has this name", "the bundled ones are "+strings.Join(names, ", ")))
		}
	}
	for i, dir := range c.Dirs {
		found, err := folderFiles(dir)
		if err != nil {
			missing = append(missing, absent("dirs", i, dir, "can't be read: "+err.Error(), "make it readable, or take it out of connectors.dirs"))
		}
		files = append(files, found...)
	}
	return files, missing, nil
}

// absent is the finding that what connectors.KEY[i] names isn't there.
func absent(key string, i int, value, problem, fix string) rules.Finding {
	return rules.Finding{
		Severity: rules.SeverityError, Code: "settings", Key: fmt.Sprintf("connectors.%s[%d]", key, i), Value: value,
		Problem: fmt.Sprintf("%q: %s", value, problem), Fix: fix,
	}
}

// NamedFiles reads one connector file, or those of a folder.
func NamedFiles(name string) ([]rules.File, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		files, err := folderFiles(name)
		if err == nil && len(files) == 0 {
			err = errors.New("the folder has no .yaml file")
		}
		return files, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return []rules.File{{Name: name, Data: data}}, nil
}

func folderFiles(dir string) ([]rules.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []rules.File
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		name := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, rules.File{Name: name, Data: data})
	}
	return files, nil
}

// RuleSettings are the user's settings as rules take them. Those for bundled
// connectors that are not loaded are left out.
func RuleSettings(c config.Connectors) []rules.Settings {
	var out []rules.Settings
	for _, s := range c.Settings {
		overrides := make(map[string]rules.Override, len(s.Overrides))
		for operation, o := range s.Overrides {
			overrides[operation] = ruleOverride(o)
		}
		one := rules.Settings{Connector: s.Connector, Hosts: s.Hosts, Parameters: map[string]rules.Given{}, Overrides: overrides}
		for name, p := range s.Parameters {
			one.Parameters[name] = rules.Given(p)
		}
		if s.Credentials != nil {
			one.CredentialHeader = s.Credentials.Header
			one.Signs = s.Credentials.SigV4 != nil && s.Credentials.Use == config.UseAlways
		}
		out = append(out, one)
	}
	return out
}

// ParameterSettings are the settings of parameters alone, for those connectors that are loaded.
func ParameterSettings(c config.Connectors) (out []rules.Settings) {
	for _, s := range RuleSettings(c) {
		out = append(out, rules.Settings{Connector: s.Connector, Parameters: s.Parameters, Optional: true})
	}
	return out
}

func ruleOverride(o config.Override) rules.Override {
	return rules.Override{
		Settle: given(o.Settle), Confirmations: given(o.AbsentConfirmations), Spacing: given(o.AbsentSpacing),
		OnAbsent: rules.OnAbsent(o.OnAbsent), BlockScope: string(o.BlockScope), MaxDispatches: given(o.MaxDispatches), Verify: rules.Verify(o.Verify),
		Timeout: given(o.Timeout), MaxBody: given(int64(o.MaxBody)),
	}
}

// given is nil for a zero value, which changes nothing.
func given[T int | int64 | time.Duration](v T) *T {
	if v == 0 {
		return nil
	}
	return &v
}

// RuleDefaults are the configuration's numbers for rules that say nothing.
func RuleDefaults(c config.Config) rules.Defaults {
	return rules.Defaults{
		Settle: c.Reconcile.Settle, Confirmations: c.Reconcile.AbsentConfirmations, Spacing: c.Reconcile.AbsentSpacing,
		Verify:  rules.Verify(c.VerifyOnReplay),
		MaxBody: int64(c.Proxy.MaxBody), Total: c.Proxy.Timeouts.Total,
	}
}

// maxVersions is how many stored versions of connectors stay loaded. More than a
// few in use at once is unusual, and loading one again takes milliseconds.
const maxVersions = 64

// versions loads stored versions of connectors by the hash of their file, with the
// user's settings of now. It is safe for concurrent use.
type versions struct {
	content  func(ctx context.Context, hash string) ([]byte, error)
	settings []rules.Settings
	defaults rules.Defaults

	mu     sync.Mutex
	loaded map[string]*rules.Connector
}

// use puts other settings in force.
func (v *versions) use(settings []rules.Settings) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settings, v.loaded = settings, nil
}

// connector implements proxy.Pinned, and what a reconciler asks for.
func (v *versions) connector(ctx context.Context, hash string) (*rules.Connector, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.loaded[hash]; c != nil {
		return c, nil
	}
	content, err := v.content(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("stored rule file: %w", err)
	}
	c, findings := rules.LoadPinned(content, v.settings, v.defaults)
	if c == nil {
		return nil, unloadable(findings)
	}
	if v.loaded == nil || len(v.loaded) >= maxVersions {
		v.loaded = map[string]*rules.Connector{}
	}
	v.loaded[hash] = c
	return c, nil
}

// unloadable names the first error, without the value it is about.
func unloadable(fs rules.Findings) error {
	for _, f := range fs {
		if f.Severity != rules.SeverityWarning {
			return fmt.Errorf("the stored rule file does not load: %s at %s", f.Code, cmp.Or(f.Key, "its start"))
		}
	}
	return errors.New("the stored rule file does not load")
}
