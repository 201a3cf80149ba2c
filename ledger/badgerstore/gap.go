package badgerstore

import (
	"errors"

	"keep-proxy/ledger"
)

// gapKey holds all gaps: there are few.
var gapKey = []byte{kMeta, 'g'}

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

// PutGaps implements ledger.Tx.
func (t *tx) PutGaps(all []ledger.Gap) error { return t.fail(t.layer.putValue(gapKey, all)) }

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
