package reconcilers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"keep-proxy/dispatch"
	"keep-proxy/internal/masking"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// masked is what a secret looks like in what is stored.
const masked = masking.Masked

// stored rebuilds the request of a record. The header fields that were masked when
// it was stored are left out of it, and named.
func stored(ctx context.Context, records Records, m *ledger.Mutation) (*rules.Request, []string, error) {
	body, err := dispatch.StoredBody(ctx, records, m.Request.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("the stored body: %w", err)
	}
	header, left := http.Header{}, []string(nil)
	for name, values := range m.Request.Header {
		if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, masked) }) {
			left = append(left, name)
			continue
		}
		header[name] = values // Shared: nobody writes to them.
	}
	request, refusal := rules.Rebuild(m.Request.Method, m.Request.URL, header, body)
	if refusal != nil {
		return nil, nil, fmt.Errorf("the stored request: %w", refusal)
	}
	slices.Sort(left)
	return request, left, nil
}

// maskedQuery names the query values that were masked when the request was stored. Some APIs take
// their credential there.
func maskedQuery(address string) (left []string) {
	_, query, _ := strings.Cut(address, "?")
	for piece := range strings.SplitSeq(query, "&") {
		if spelt, _, _ := strings.Cut(piece, "="); strings.Contains(piece, url.QueryEscape(masked)) {
			name, _ := url.QueryUnescape(spelt)
			left = append(left, "query."+name)
		}
	}
	slices.Sort(left)
	return left
}

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
