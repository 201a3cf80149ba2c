package badgerstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// Report counts what Verify looked at.
type Report struct {
	ID        string `json:"id"`
	Events    uint64 `json:"events"`
	Commits   uint64 `json:"commits"`
	Mutations int    `json:"mutations"`
	Runs      int    `json:"runs"`
	Items     int    `json:"items"`
	Values    int    `json:"values"`
}

// Records counts what people know of: mutations, runs and items.
func (r Report) Records() uint64 { return uint64(max(r.Mutations+r.Runs+r.Items, 0)) }

// Progress is told now and then how many values were verified; nil hears nothing.
type Progress func(values int)

// progressEvery is how many values lie between two calls of Progress.
const progressEvery = 10_000

// Verify checks a closed ledger whole: its tables, its folds, the log and the witness, and every value's checksum.
// Every event must have its place in the chain, every record its index entries, every reference its target. The
// first thing that is wrong is its error. A log that a crash left is folded, as the next start would.
func Verify(ctx context.Context, c Config, progress Progress) (r Report, err error) {
	if err := c.validate(); err != nil {
		return r, err
	}
	s := newStore(c)
	defer func() { err = errors.Join(err, s.release()) }()
	if s.lock, err = lockLedger(c); err != nil {
		return r, err
	}
	found, err := look(c)
	if err != nil {
		return r, err
	}
	if found.none() {
		return r, fmt.Errorf("%w: there is no ledger in %s", ledger.ErrMissing, c.Dir)
	}
	if err := errors.Join(c.cutShort(), s.openFiles(found, false)); err != nil {
		return r, explain(err)
	}
	if err := s.load(false); err != nil {
		return r, explain(err)
	}
	if r, err = s.verifyAll(ctx, progress); err != nil {
		return r, explain(err)
	}
	return r, nil
}

// verifyAll checks what load leaves out.
func (s *Store) verifyAll(ctx context.Context, progress Progress) (Report, error) {
	r := Report{ID: s.identity.ID, Events: s.tip.Seq, Commits: s.tip.Commit}
	if err := s.db.VerifyChecksum(); err != nil {
		return r, fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	err := s.db.View(func(txn *badger.Txn) (err error) {
		v := &verifier{ctx: ctx, config: s.config, src: snapshot{txn: txn}, report: &r, progress: progress}
		if v.lost, err = readLost(v.src); err != nil {
			return err
		}
		return v.all(s.tip)
	})
	return r, err
}

// verifier looks at all values.
type verifier struct {
	ctx      context.Context
	config   Config
	src      snapshot
	report   *Report
	progress Progress
	// recordsOnly leaves out the files of bodies.
	recordsOnly bool
	// expected are the index entries that follow from records, found those that are stored.
	expected, found tally
	// told are the events that belong to a mutation, listed those that its record or an index entry lists.
	told, listed tally
	// lost are events that accepted losses took: they may be listed, and not be there.
	lost lostEvents
	// spans are entries that several records share, and that were found.
	spans map[string]struct{}
	// naming has each entry looked up, to name the one that is missing.
	naming bool
}

// all checks the chain of events up to to, each value, and what follows from records against what is stored.
func (v *verifier) all(to tip) error {
	v.spans = map[string]struct{}{}
	if err := verifyEvents(v.src, to, v.lost, v.listing); err != nil {
		return err
	}
	if err := v.values(); err != nil {
		return err
	}
	if v.listed == v.told && v.found == v.expected {
		return nil
	}
	// What no record names doesn't count. Which entry is missing takes a look for each.
	v.naming, v.progress, v.listed = true, nil, tally{}
	if err := v.values(); err != nil {
		return err
	}
	if v.listed != v.told {
		return fmt.Errorf("%w: records list %d events of theirs, and not the %d that they should",
			ledger.ErrDamaged, v.listed.n, v.told.n)
	}
	return nil
}

// values checks each value.
func (v *verifier) values() error {
	*v.report = Report{ID: v.report.ID, Events: v.report.Events, Commits: v.report.Commits}
	c := v.src.cursor(nil, false)
	defer c.close()
	for c.seek(nil); c.valid(); c.next() {
		sealed, err := c.sealed()
		if err != nil {
			return err
		}
		if err := v.stored(c.key(), sealed); err != nil {
			return err
		}
		if v.report.Values++; v.report.Values%progressEvery != 0 {
			continue
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if v.progress != nil {
			v.progress(v.report.Values)
		}
	}
	return nil
}

// stored checks one value as it lies there.
func (v *verifier) stored(k, sealed []byte) error {
	content, flags, err := unseal(k, sealed)
	if err == nil && flags&flagSplit != 0 {
		content, err = v.src.get(k)
	}
	if err != nil {
		return required(err, "value "+keyName(k))
	}
	return v.value(k, content)
}

// value checks one value by its kind.
func (v *verifier) value(k, content []byte) error {
	switch k[0] {
	case kMutation:
		return v.mutation(k, content)
	case kRun:
		r, err := decodeRun(k, content)
		if err != nil {
			return err
		}
		v.report.Runs++
		return v.belongs(k, runKey(r.ID), storedRunIndexes(r))
	case kItem:
		i, err := decodeItem(k, content)
		if err != nil {
			return err
		}
		v.report.Items++
		return v.belongs(k, itemName{i.Workflow, i.Item}.key(), itemIndexes(i))
	case kBody:
		return v.body(k, content)
	case kEvents, kMeta, kPart, kToken, kEvidence, kDelivery, kConnector, kFold:
		return nil
	case xUnresolved, xDue, xState, xByRun, xByItem, xCreated, xEscalated, xOwed,
		xRunActive, xRunEnded, xRunOpened, xRunOfItem, xItemOpened, xItemTaken, xItemID, xItemWaits:
		v.found.add(k)
		return nil
	case xHistory:
		if !v.lost.holds(binary.BigEndian.Uint64(k[len(k)-8:])) {
			v.listed.add(k)
		}
		return nil
	case xRuleMade, xTouched:
		return nil
	}
	return damaged(k, "its kind is unknown")
}

func (v *verifier) mutation(k, content []byte) error {
	m, err := decodeMutation(k, content)
	if err != nil {
		return err
	}
	v.report.Mutations++
	if err := v.belongs(k, mutationKey(m.Key), mutationIndexes(m.Mutation)); err != nil {
		return err
	}
	if err := v.spanned(m); err != nil {
		return err
	}
	if err := v.history(k, m); err != nil {
		return err
	}
	bodies := []ledger.Body{m.Request.Body}
	if m.Result != nil {
		bodies = append(bodies, m.Result.Body)
	}
	for _, b := range bodies {
		if b.Size <= ledger.InlineBody || b.Dropped {
			continue
		}
		sum, err := bodySum(b)
		if err != nil {
			return damaged(k, err.Error())
		}
		if _, err := v.src.get(key(kBody, sum)); err != nil {
			return required(err, "the body of mutation "+m.ID)
		}
	}
	return nil
}

// spanned looks for the entries that m shares with others.
func (v *verifier) spanned(m entryOfMutation) error {
	for _, n := range newSpans(nil, nil, m.Mutation) {
		x := n.key()
		if _, known := v.spans[string(x)]; known {
			continue
		}
		if _, err := v.src.get(x); err != nil {
			return required(err, "index entry "+keyName(x))
		}
		if len(v.spans) >= manySpans {
			clear(v.spans)
		}
		v.spans[string(x)] = struct{}{}
	}
	return nil
}

// manySpans is how many entries that records share are remembered as found.
const manySpans = 1 << 14

// listing expects an event in its mutation's history.
func (v *verifier) listing(k []byte, e ledger.Event) error {
	if e.Seq > v.report.Events {
		return damaged(k, "an event lies after the last commit")
	}
	if e.Mutation != "" {
		v.told.add(historyKey(e.Mutation, e.Seq))
	}
	if e.Seq%progressEvery == 0 {
		return v.ctx.Err()
	}
	return nil
}

// history notes the events that a record lists.
func (v *verifier) history(k []byte, m entryOfMutation) error {
	seqs, err := m.history.seqs()
	if err != nil {
		return damaged(k, err.Error())
	}
	d := digest(m.ID)
	for _, seq := range seqs {
		if v.lost.holds(seq) {
			continue
		}
		x := key(xHistory, d[:], binary.BigEndian.AppendUint64(nil, seq))
		if v.naming {
			// A record that was dropped, and that Badger brought back, lists what is listed without it.
			if _, err := v.src.raw(x); err == nil {
				continue
			}
		}
		v.listed.add(x)
	}
	return nil
}

func (v *verifier) body(k, content []byte) error {
	var h bodyHead
	if err := decode(k, content, &h); err != nil {
		return err
	}
	switch {
	case h.Lost:
		return nil
	case h.File && v.recordsOnly:
		return nil
	case h.File:
		return checkBodyFile(v.config, [32]byte(k[1:]), h.Size, io.Discard)
	}
	if sum := sum256(h.Inline); !bytes.Equal(sum[:], k[1:]) {
		return damaged(k, "the content has another digest")
	}
	return nil
}

// tally is a number of index entries and a sum over them, in any order. Two that are equal counted the same ones,
// as surely as hashes differ. Looking each up would take most of the time.
type tally struct {
	n   int
	sum uint64
}

var tallySeed = maphash.MakeSeed()

func (t *tally) add(k []byte) {
	t.n++
	t.sum += maphash.Bytes(tallySeed, k)
}

// belongs checks that a record lies under its own key and in its indexes.
func (v *verifier) belongs(k, own []byte, indexes [][]byte) error {
	if !bytes.Equal(k, own) {
		return damaged(k, "it holds another record")
	}
	return v.listedIn(indexes)
}

func (v *verifier) listedIn(indexes [][]byte) error {
	for _, x := range indexes {
		if v.naming {
			if _, err := v.src.get(x); err != nil {
				return required(err, "index entry "+keyName(x))
			}
		}
		v.expected.add(x)
	}
	return nil
}
