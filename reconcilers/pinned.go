package reconcilers

import (
	"context"
	"fmt"
	"sync"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// maxPinned is how many stored versions of connectors are kept as sets.
const maxPinned = 64

// pinned gives the rules to which records are pinned.
type pinned struct {
	// load gives a stored version of a connector, which stays the same one until other
	// settings are in force.
	load func(ctx context.Context, hash string) (*rules.Connector, error)

	mu   sync.Mutex
	sets map[string]pinnedSet
}

// pinnedSet is a connector alone.
type pinnedSet struct {
	of  *rules.Connector
	set *rules.Set
}

// set returns the rules to which a record is pinned: its connector alone.
func (p *pinned) set(ctx context.Context, m *ledger.Mutation) (*rules.Set, error) {
	c, err := p.load(ctx, m.ConnectorHash)
	if err != nil {
		return nil, fmt.Errorf("the rule file of version %d: %w", m.ConnectorVersion, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sets[m.ConnectorHash]; s.of == c {
		return s.set, nil
	}
	if p.sets == nil || len(p.sets) >= maxPinned {
		p.sets = map[string]pinnedSet{}
	}
	s := pinnedSet{c, rules.SetOf(c)}
	p.sets[m.ConnectorHash] = s
	return s.set, nil
}
