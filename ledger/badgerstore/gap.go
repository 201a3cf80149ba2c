package badgerstore

import (
	"errors"

	"keep-proxy/ledger"
)

// gapKey holds all gaps: there are few.
var gapKey = []byte{kMeta, 'g'}

// knownGaps spares the committer the look for gaps at each claim.
type knownGaps struct {
	known bool
	all   []ledger.Gap
	// changed is the batch that put them last: until it is durable they are read.
	changed uint64
}

// Gaps implements ledger.View.
func (v *view) Gaps() (gaps []ledger.Gap, err error) {
	content, err := v.src.get(gapKey)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return gaps, decode(gapKey, content, &gaps)
}

// Gaps implements ledger.View.
func (t *tx) Gaps() ([]ledger.Gap, error) {
	k := &t.store.gaps
	if k.known {
		return k.all, nil
	}
	gaps, err := t.view.Gaps()
	// Answered from memory they count as durable.
	if err == nil && k.changed <= t.store.horizon.durable.Load() {
		k.known, k.all = true, gaps
	}
	return gaps, err
}

// PutGaps implements ledger.Tx.
func (t *tx) PutGaps(all []ledger.Gap) error {
	t.store.gaps = knownGaps{changed: t.batch.number}
	return t.fail(t.layer.putValue(gapKey, all))
}

// LastEvent implements ledger.View.
func (v *view) LastEvent() (*ledger.Event, error) {
	src, ok := v.src.(snapshot)
	if !ok {
		return nil, errors.New("the newest event is asked for in a view only")
	}
	r := newEvents(src)
	defer r.close()
	e, err := r.last()
	if err != nil {
		return nil, err
	}
	return &e.Event, nil
}
