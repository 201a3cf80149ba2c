package badgerstore

import (
	"errors"
	"fmt"

	"keep-proxy/ledger"
)

// checkpoint is written so often that no memtable, and so no table that Badger
// made of one, is without: a gap in their numbers shows a lost table.
type checkpoint struct {
	Number uint64 `cbor:"1,keyasint"`
	// Bytes counts what was written to memtables since the ledger began, events twice.
	Bytes uint64 `cbor:"2,keyasint"`
	// Before is the tip before the transaction that holds the checkpoint.
	Before tip `cbor:"3,keyasint"`
	// Epoch is that of the high-water mark. The first commit of an epoch has a checkpoint.
	Epoch string `cbor:"4,keyasint,omitempty"`
}

const (
	// checkpointBytes is how much is written between two checkpoints.
	checkpointBytes = memTableSize / 8
	// verifyBytes is how far back Open verifies: three memtables can be in logs.
	verifyBytes = 4 * memTableSize
)

func readCheckpoint(src source, sk []byte) (checkpoint, error) {
	var c checkpoint
	content, err := src.get(sk)
	if err != nil {
		return c, required(err, "checkpoint "+keyName(sk))
	}
	return c, decode(sk, content, &c)
}

// baseline is from where a ledger is verified: its beginning, or where a loss was
// accepted.
type baseline struct {
	// Checkpoint is the number of the first checkpoint.
	Checkpoint uint64 `cbor:"1,keyasint"`
	// Before is the tip before the transaction that holds that checkpoint.
	Before tip `cbor:"2,keyasint"`
}

var baselineKey = []byte{kMeta, 'b'}

func readBaseline(src source) (baseline, error) {
	b := baseline{Checkpoint: 1}
	content, err := src.get(baselineKey)
	if errors.Is(err, ledger.ErrNotFound) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	return b, decode(baselineKey, content, &b)
}

// verifyCheckpoints checks that no checkpoint since the baseline is missing and that
// each one's event is there. It returns the last, and the one from which Open
// verifies all.
func verifyCheckpoints(src snapshot) (last, from checkpoint, err error) {
	base, err := readBaseline(src)
	if err != nil {
		return last, from, err
	}
	lost, err := readLost(src)
	if err != nil {
		return last, from, err
	}
	var all []checkpoint
	first := numbered(kCheckpoint, base.Checkpoint)
	r := newEvents(src)
	defer r.close()
	src.after([]byte{kCheckpoint}, first, func(k []byte) bool {
		var c checkpoint
		if c, err = readCheckpoint(src, k); err != nil {
			return false
		}
		if want := base.Checkpoint + uint64(len(all)); c.Number != want {
			err = fmt.Errorf("%w: checkpoint %d is missing", ledger.ErrDamaged, want)
			return false
		}
		if err = c.verify(r, lost); err != nil {
			return false
		}
		all = append(all, c)
		return true
	})
	if err != nil {
		return last, from, err
	}
	if len(all) == 0 {
		return last, from, fmt.Errorf("%w: it has no checkpoint", ledger.ErrDamaged)
	}
	return all[len(all)-1], windowStart(all), nil
}

// windowStart is the newest checkpoint with verifyBytes behind it, else the first.
func windowStart(all []checkpoint) checkpoint {
	end := all[len(all)-1].Bytes
	for i := len(all) - 1; i > 0; i-- {
		if end-all[i].Bytes >= verifyBytes {
			return all[i]
		}
	}
	return all[0]
}

// verify checks the checkpoint's event, unless that was lost.
func (c checkpoint) verify(r *events, lost lostEvents) error {
	if c.Before.Seq == 0 || lost.endAt(c.Before) {
		return nil
	}
	e, err := r.at(c.Before.Seq)
	if err != nil {
		return required(err, fmt.Sprintf("event %d, which checkpoint %d names,", c.Before.Seq, c.Number))
	}
	if e.hash != c.Before.Hash {
		return fmt.Errorf("%w: event %d has another hash than checkpoint %d says",
			ledger.ErrDamaged, c.Before.Seq, c.Number)
	}
	return nil
}
