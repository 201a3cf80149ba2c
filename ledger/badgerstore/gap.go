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
	if err == nil {
		gaps, err = decodeGaps(gapKey, content)
	}
	return orNone(gaps, err)
}

// Gaps implements ledger.View. Each claim asks.
func (t *tx) Gaps() ([]ledger.Gap, error) { return orNone(load(t, gapKey, decodeGaps)) }

func decodeGaps(key, content []byte) (gaps []ledger.Gap, err error) {
	return gaps, decode(key, content, &gaps)
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
