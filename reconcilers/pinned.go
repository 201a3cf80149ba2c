package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// maxPinned is how many stored versions of rule files stay loaded. More than a
// few in use at once is unusual, and loading one again takes milliseconds.
const maxPinned = 64

// pinned loads stored versions of rule files, with the user's settings of now.
type pinned struct {
	records  Records
	settings []rules.Settings
	defaults rules.Defaults

	mu   sync.Mutex
	sets map[string]*rules.Set
}

func newPinned(records Records, settings []rules.Settings, defaults rules.Defaults) *pinned {
	return &pinned{records: records, settings: settings, defaults: defaults, sets: map[string]*rules.Set{}}
}

// use puts other settings in force.
func (p *pinned) use(settings []rules.Settings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings = settings
	clear(p.sets)
}

// set returns the rules to which a record is pinned: its connector alone.
func (p *pinned) set(ctx context.Context, m *ledger.Mutation) (*rules.Set, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if set := p.sets[m.ConnectorHash]; set != nil {
		return set, nil
	}
	content, err := p.records.Connector(ctx, m.ConnectorHash)
	if err != nil {
		return nil, fmt.Errorf("the rule file of version %d: %w", m.ConnectorVersion, err)
	}
	set, err := p.load(m.Connector, content)
	if err != nil {
		return nil, err
	}
	if len(p.sets) >= maxPinned {
		clear(p.sets)
	}
	p.sets[m.ConnectorHash] = set
	return set, nil
}

// load reads one file under what the settings say of its connector; overrides of
// operations that this version does not have are passed over.
func (p *pinned) load(name string, content []byte) (*rules.Set, error) {
	connector, findings := rules.LoadPinned(content, p.settings, p.defaults)
	if connector == nil {
		return nil, unloadable(findings)
	}
	var settings []rules.Settings
	for _, s := range p.settings {
		if s.Connector != connector.Name {
			continue
		}
		s.Overrides = maps.Clone(s.Overrides)
		maps.DeleteFunc(s.Overrides, func(op string, _ rules.Override) bool { return connector.Operation(op) == nil })
		settings = append(settings, s)
	}
	set, findings := rules.Load([]rules.File{{Name: name, Data: content}}, settings, p.defaults)
	if set == nil {
		return nil, unloadable(findings)
	}
	return set, nil
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
