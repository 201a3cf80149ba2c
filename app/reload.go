package app

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"keep-proxy/admin/wire"
	"keep-proxy/config"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// reloads remembers how the latest reload ended.
type reloads struct {
	// one lets reloads happen one after another.
	one sync.Mutex
	// connectors is what is in force of the configuration; a reload alone reads and writes it.
	connectors config.Connectors

	mu   sync.Mutex
	last *wire.LastReload
}

func (r *reloads) ended(at time.Time, err error) {
	last := &wire.LastReload{At: at}
	if err != nil {
		last.Error = err.Error()
	}
	r.mu.Lock()
	r.last = last
	r.mu.Unlock()
}

// latest is nil before the first reload.
func (r *reloads) latest() *wire.LastReload {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Reload reads the configuration and the connector files again and puts what is
// below connectors in force, all of it or, on any error, nothing: then what was in
// force stays. Requests and runs that are under way go on; each request meets one
// set of rules. Other keys that changed wait for a restart and are named.
func (a *App) Reload(ctx context.Context, actor string) (wire.Reloaded, error) {
	a.reloads.one.Lock()
	defer a.reloads.one.Unlock()
	out, err := a.reload()
	a.reloads.ended(a.clock.Now(), err)
	e := ledger.Event{Actor: actor, What: "reload", Why: "connectors: " + or(strings.Join(out.Connectors, ", "), "nothing changed")}
	if err != nil {
		e.What, e.Why = "reload_failed", err.Error()
		a.options.Log.Error().Err(err).Msg("reload failed; what was in force before stays in force")
	} else {
		a.options.Log.Info().Strs("connectors", out.Connectors).Strs("waiting", out.Waiting).Msg("reloaded")
		for _, key := range out.Waiting {
			a.options.Log.Warn().Str("key", key).Msg("a key that changed waits for a restart")
		}
	}
	a.ledger.Refuse(e)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	return out, err
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// reload is Reload without telling anybody.
func (a *App) reload() (wire.Reloaded, error) {
	out := wire.Reloaded{Connectors: []string{}, Waiting: []string{}, Findings: []string{}}
	r, err := a.readAgain()
	if err != nil {
		return out, err
	}
	for _, f := range r.findings {
		out.Findings = append(out.Findings, f.String())
	}
	out.Waiting = append(out.Waiting, r.waiting...)
	out.Connectors = append(out.Connectors, r.changed...)
	a.reloads.connectors = r.connectors
	a.credentials.use(r.connectors, r.set)
	a.versions.use(RuleSettings(r.connectors))
	a.rules.Store(r.set)
	a.proxy.Reloaded()
	return out, nil
}

// readable is what the files say, and what of it is other than what is in force.
type readable struct {
	connectors config.Connectors
	set        *rules.Set
	findings   rules.Findings
	// changed are connectors, waiting other keys.
	changed, waiting []string
}

// readAgain reads what could be put in force.
func (a *App) readAgain() (out readable, err error) {
	next := a.config
	if a.options.Load != nil {
		if next, err = a.options.Load(); err != nil {
			return out, fmt.Errorf("configuration: %w", err)
		}
	}
	c := a.config.WithConnectors(next)
	if out.set, out.findings, err = LoadRules(c); err != nil {
		return out, err
	}
	if out.set == nil {
		return out, fmt.Errorf("connectors: %w", out.findings.Faults())
	}
	out.connectors, out.waiting = c.Connectors, changedKeys(a.config, next)
	out.changed = changedConnectors(a.rules.Load(), out.set, changedSettings(a.reloads.connectors.Settings, c.Connectors.Settings))
	return out, nil
}

// stale reports whether the files say something else than what is in force, or than what the
// latest reload said of them.
func (a *App) stale() bool {
	a.reloads.one.Lock()
	defer a.reloads.one.Unlock()
	said := ""
	if last := a.reloads.latest(); last != nil {
		said = last.Error
	}
	r, err := a.readAgain()
	if err != nil {
		return said != err.Error()
	}
	return said != "" || len(r.changed) > 0 || !reflect.DeepEqual(r.connectors, a.reloads.connectors)
}

// changedSettings tells of which connectors the settings differ.
func changedSettings(before, after []config.ConnectorSettings) map[string]bool {
	changed := map[string]bool{}
	of := func(list []config.ConnectorSettings, name string) (out config.ConnectorSettings) {
		if i := slices.IndexFunc(list, func(s config.ConnectorSettings) bool { return s.Connector == name }); i >= 0 {
			out = list[i]
		}
		return out
	}
	for _, s := range slices.Concat(before, after) {
		changed[s.Connector] = !reflect.DeepEqual(of(before, s.Connector), of(after, s.Connector))
	}
	return changed
}

// changedConnectors names those that came, went, or have another file, hosts or settings.
func changedConnectors(before, after *rules.Set, settings map[string]bool) []string {
	var names []string
	for _, c := range after.Connectors() {
		if old := before.Connector(c.Name); old == nil || old.Hash != c.Hash || !slices.Equal(old.Hosts, c.Hosts) || settings[c.Name] {
			names = append(names, c.Name)
		}
	}
	for _, c := range before.Connectors() {
		if after.Connector(c.Name) == nil {
			names = append(names, c.Name+" (gone)")
		}
	}
	slices.Sort(names)
	return names
}

// changedKeys names the keys that differ, but for those below connectors.
func changedKeys(before, after config.Config) []string {
	var keys []string
	a, b := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range a.NumField() {
		section := a.Type().Field(i)
		if section.Name == "Connectors" || !section.IsExported() {
			continue
		}
		x, y := a.Field(i), b.Field(i)
		if x.Kind() != reflect.Struct {
			if !reflect.DeepEqual(x.Interface(), y.Interface()) {
				keys = append(keys, keyName(section.Name))
			}
			continue
		}
		for j := range x.NumField() {
			key := x.Type().Field(j)
			if key.IsExported() && !reflect.DeepEqual(x.Field(j).Interface(), y.Field(j).Interface()) {
				keys = append(keys, keyName(section.Name)+"."+keyName(key.Name))
			}
		}
	}
	return keys
}

// keyName is a field's name as a key: MaxBody is max_body, UpstreamCA upstream_ca.
func keyName(field string) string {
	var b strings.Builder
	letters := []rune(field)
	for i, r := range letters {
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && !unicode.IsUpper(letters[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
