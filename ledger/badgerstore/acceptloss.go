package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// Loss says what AcceptLoss found and changed.
type Loss struct {
	ID string `json:"id"`
	// Cause is why the ledger refused to open.
	Cause string `json:"cause"`
	// New says that nothing was left, so that a new ledger was made.
	New       bool `json:"new"`
	Mutations int  `json:"mutations"`
	Runs      int  `json:"runs"`
	Items     int  `json:"items"`
	// Bodies counts the contents of requests and answers that are gone and that something
	// names.
	Bodies int `json:"bodies"`
	// Events counts the events that accepted losses took from between others. How many there
	// were after the last one that is left, nobody knows.
	Events uint64 `json:"events"`
	// ended says that Open found nothing wrong but an early end.
	ended bool
}

// errNoLoss refuses to accept a loss that didn't happen.
var errNoLoss = errors.New("the ledger opens as it is: there is no loss to accept")

// WhatAcceptLoss names the event that AcceptLoss appends.
const WhatAcceptLoss = "accept_loss"

// lossBatch is how many records one command marks at most.
const lossBatch = 100

// AcceptLoss goes on deliberately with a ledger that Open refuses as missing, damaged or shortened. Badger must
// still be able to read what is left. What was active may have gone on in the part that is lost. So all of it waits
// for a person or for recovery. Dispatches in flight have lost their owner. Runs that weren't over are
// paused:attention. Every item that isn't done or skipped needs attention. An event says who accepted and why, and
// log and witness begin anew.
//
// What began in the lost part leaves no trace, so its items can't be marked. Because of a gap (ledger.Gap) what
// would be sent is asked about first, until it is confirmed. For a missing ledger a new one is made, under
// Config.ID if that is set.
func AcceptLoss(ctx context.Context, c Config, reason, actor string) (Loss, error) {
	if strings.TrimSpace(reason) == "" || strings.TrimSpace(actor) == "" {
		return Loss{}, errors.New("accept a loss: a reason and an actor are needed")
	}
	sound, cause, err := causeOfLoss(ctx, c)
	if err != nil {
		return Loss{}, fmt.Errorf("accept a loss: %w", err)
	}
	loss := Loss{Cause: cause.Error(), ended: errors.Is(cause, ledger.ErrShortened)}
	if sound != nil {
		loss.ID = sound.ID()
		err := errors.Join(sound.acceptLostBodies(ctx, &loss), sound.noteLoss(ctx, loss, reason, actor), sound.Close())
		return loss, err
	}
	if errors.Is(cause, ledger.ErrMissing) {
		loss.New = true
		if err := startAnew(c); err != nil {
			return loss, fmt.Errorf("accept a loss: %w", err)
		}
	}
	s, err := open(ctx, c, true)
	if err != nil && !isLoss(err) {
		return loss, fmt.Errorf("accept a loss: %w", err) // It may pass.
	}
	if err != nil {
		return loss, fmt.Errorf("accept a loss: the rest can't be opened either, so nothing of it can be kept: %w; restore a backup; "+
			"without one, set ledger.id to the old id, move the folder %s away, and accept that it is missing", err, c.Dir)
	}
	loss.ID = s.ID()
	err = s.acceptLoss(ctx, &loss, reason, actor)
	return loss, errors.Join(err, s.Close())
}

// causeOfLoss opens the ledger to learn why that is refused. If it opens, and only
// files of bodies are lost, it is returned open.
func causeOfLoss(ctx context.Context, c Config) (sound *Store, cause, err error) {
	if c.ID == "" {
		found, err := look(c)
		if err != nil {
			return nil, nil, err
		}
		cut, err := exists(c.acceptingPath())
		if err != nil {
			return nil, nil, err
		}
		if found.none() && !cut {
			return nil, nil, fmt.Errorf("%w: there is no sign of a ledger in %s", errNoLoss, c.Dir)
		}
	}
	s, cause := open(ctx, c, false)
	switch {
	case cause == nil:
		cause, err := s.lostBodies(ctx, func([32]byte, bodyHead) {})
		if cause == nil || err != nil {
			return nil, nil, errors.Join(errNoLoss, err, s.Close())
		}
		return s, cause, nil
	case isLoss(cause):
		return nil, cause, nil
	}
	return nil, nil, cause
}

// isLoss reports whether err says that something of a ledger is gone.
func isLoss(err error) bool {
	return errors.Is(err, ledger.ErrMissing) || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrShortened)
}

// startAnew makes a new ledger where only its signs are left. Data that Badger
// can't open are never removed.
func startAnew(c Config) (err error) {
	if err := makeFolder(c.Dir); err != nil {
		return err
	}
	lock, err := lockLedger(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	id := c.ID
	if id == "" {
		id = c.NewID()
	}
	// Cut short from here on, what is left must not pass for a first start.
	if err := writeSynced(c.acceptingPath(), []byte(id)); err != nil {
		return err
	}
	for _, path := range []string{c.logPath(), c.identityPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return create(c, id)
}

// acceptLoss marks what was active, then says so.
func (s *Store) acceptLoss(ctx context.Context, loss *Loss, reason, actor string) error {
	gap, err := s.gapOf(loss)
	if err != nil {
		return err
	}
	loss.Bodies, loss.Events = s.left.bodies, s.lost.count()
	flight, err := s.inFlight(ctx)
	if err != nil {
		return err
	}
	var runs, items [][32]byte
	err = s.snapshot(func(src snapshot) error {
		active, err := src.keys([]byte{xRunActive})
		if err != nil {
			return err
		}
		for _, k := range active {
			runs = append(runs, markName(k))
		}
		src.each([]byte{kItem}, func(k []byte) bool { items = append(items, markName(k)); return true })
		return nil
	})
	if err != nil {
		return err
	}
	names := make([][32]byte, len(flight))
	for i, k := range flight {
		names[i] = k
	}
	for _, step := range []struct {
		names [][32]byte
		mark  func(*tx, [32]byte) (bool, error)
		count *int
	}{
		{names, (*tx).loseOwner, &loss.Mutations},
		{runs, (*tx).pauseRun, &loss.Runs},
		{items, (*tx).holdItem, &loss.Items},
	} {
		if err := s.markAll(ctx, step.names, step.mark, step.count); err != nil {
			return err
		}
	}
	if err := errors.Join(s.acceptLostBodies(ctx, loss), s.openGap(ctx, gap, reason, actor), s.noteLoss(ctx, *loss, reason, actor)); err != nil {
		return err
	}
	if err := removeIfThere(s.config.restoringPath()); err != nil {
		return err
	}
	return errors.Join(os.Remove(s.config.acceptingPath()), syncDir(s.config.Dir))
}

// gapOf is the gap of the loss. It begins with the last event if only the end is gone, else it has no beginning.
func (s *Store) gapOf(loss *Loss) (gap ledger.Gap, err error) {
	gap = ledger.Gap{Until: s.now(), Cause: ledger.GapLoss}
	if loss.New || !loss.ended || !s.left.whole {
		return gap, nil
	}
	err = s.snapshot(func(src snapshot) error {
		last, err := (&view{src: src}).LastEvent()
		if err == nil {
			gap.Since = last.At
		}
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		err = nil
	}
	return gap, err
}

// openGap puts the gap beside those there are.
func (s *Store) openGap(ctx context.Context, gap ledger.Gap, reason, actor string) error {
	return s.Update(ctx, func(t ledger.Tx) error {
		gaps, err := t.Gaps()
		if err != nil {
			return err
		}
		gap.Number, gap.Actor, gap.Reason = len(gaps)+1, ledger.PersonActor(actor), reason
		return t.PutGaps(append(slices.Clone(gaps), gap))
	})
}

// noteLoss appends who accepted, and why.
func (s *Store) noteLoss(ctx context.Context, loss Loss, reason, actor string) error {
	evidence := loss.Cause
	if loss.Events > 0 {
		evidence = "events that are gone: " + s.lost.String() + "; " + evidence
	}
	return s.Update(ctx, func(t ledger.Tx) error {
		t.Append(ledger.Event{
			At: s.now(), Actor: ledger.PersonActor(actor), What: WhatAcceptLoss, Why: reason,
			Evidence: shorten(evidence),
		})
		return nil
	})
}

// acceptingPath marks a ledger while a loss is being accepted.
func (c Config) acceptingPath() string { return filepath.Join(c.Dir, "ledger.accepting") }

// canRebuild says whether ledger.id can be made anew from the data.
func canRebuild(err error) bool {
	return errors.Is(err, ledger.ErrDamaged) || errors.Is(err, os.ErrNotExist)
}

// rebuildIdentity writes ledger.id from what the data say.
func (s *Store) rebuildIdentity() error {
	return s.view(func(src snapshot) error {
		content, err := src.get(metaKey)
		if err != nil {
			return required(err, "its identity")
		}
		if err := decode(metaKey, content, &s.identity); err != nil {
			return err
		}
		if s.config.ID != "" && s.identity.ID != s.config.ID {
			return fmt.Errorf("%w: the data are those of %s, %s is expected", ledger.ErrForeign, s.identity.ID, s.config.ID)
		}
		return writeSynced(s.config.identityPath(), s.identity.text())
	})
}

// recoverLeft takes what is left as the end, and folds what the log has after that. A new baseline says that
// nothing leads up to there.
func (s *Store) recoverLeft() error {
	if err := s.view(func(src snapshot) (err error) {
		s.tip, err = findTip(src)
		return err
	}); err != nil {
		return err
	}
	s.foldedTip = s.tip
	if s.log == nil || s.log.First() > s.tip.Commit+1 || s.log.Last().Number <= s.tip.Commit {
		return nil // What is behind a hole was decided on what the hole held.
	}
	r, err := s.readRun()
	if err != nil {
		return nil //nolint:nilerr // It isn't the log of what is left.
	}
	return s.foldRun(r)
}

// isWhole reports whether nothing is missing before the end.
func isWhole(src snapshot, end tip) bool {
	lost, err := readLost(src)
	if err != nil {
		return false
	}
	base, err := readBaseline(src)
	if err != nil {
		return false
	}
	if folded, newest, err := readFolds(src, base); err != nil || folded != end || newest != end {
		return false
	}
	v := &verifier{ctx: context.Background(), src: src, report: &Report{Events: end.Seq}, recordsOnly: true, lost: lost}
	return v.all(end) == nil
}

// findTip looks for the end of the newest fold of which something is left. It also looks for events behind that:
// their numbers are taken, since what is left may name them.
func findTip(src snapshot) (last tip, err error) {
	src.each([]byte{kFold}, func(k []byte) bool {
		var content []byte
		if content, err = src.get(k); err != nil {
			return false
		}
		var r foldRecord
		if err = decode(k, content, &r); err == nil && r.Tip.Commit > last.Commit {
			last = r.Tip
		}
		return err == nil
	})
	if err != nil {
		return last, err
	}
	r := newEvents(src)
	defer r.close()
	switch e, err := r.last(); {
	case err == nil && e.Seq >= last.Seq:
		last.Seq, last.Hash = e.Seq, e.hash
	case err != nil && !errors.Is(err, ledger.ErrNotFound):
		return last, err
	}
	return last, nil
}

// beginAccepting puts a new log and a new baseline in place. Until the marking is over, ledger.accepting
// keeps the ledger from opening.
func (s *Store) beginAccepting() error {
	if err := writeSynced(s.config.acceptingPath(), []byte(s.ID())); err != nil {
		return err
	}
	if err := s.db.Update(func(txn *badger.Txn) (err error) {
		src := snapshot{txn: txn}
		if s.lost, err = findLost(src, s.tip); err != nil {
			return err
		}
		l := newWrites(txn)
		return errors.Join(l.putValue(baselineKey, s.tip), l.putValue(lostKey, s.lost), l.apply(txn))
	}); err != nil {
		return err
	}
	if s.log != nil {
		if err := s.log.Close(); err != nil {
			return err
		}
	}
	err := createLog(s.config, s.tip.Commit)
	if err == nil {
		s.log, err = openLog(s.config)
	}
	s.foldedTip = s.tip
	return err
}

// markAll marks names by commands of a bounded size: of fewer where the records are long.
func (s *Store) markAll(ctx context.Context, names [][32]byte, mark func(*tx, [32]byte) (bool, error), count *int) error {
	for most := lossBatch; len(names) > 0; {
		n, marked := min(len(names), most), 0
		err := s.do(ctx, func(t *tx) error {
			for _, name := range names[:n] {
				is, err := mark(t, name)
				if err != nil {
					return err
				}
				if is {
					marked++
				}
			}
			return nil
		})
		switch {
		case err == nil:
			names = names[n:]
			*count += marked
		case n > 1 && errors.Is(err, errTooLarge):
			most = n / 2
		default:
			return err
		}
	}
	return nil
}

// loseOwner makes a record in flight one that recovery settles.
func (t *tx) loseOwner(name [32]byte) (bool, error) {
	m, err := t.Mutation(name)
	if err != nil {
		return false, err
	}
	d := m.Current()
	if d == nil || d.Lost {
		return false, nil
	}
	d.Lost = true
	m.Version++
	m.UpdatedAt = t.store.now()
	return true, t.PutMutation(m)
}

func (t *tx) pauseRun(name [32]byte) (bool, error) {
	r, err := t.runBy(name)
	if err != nil {
		return false, err
	}
	r.Version++
	r.State, r.Class, r.Reason = ledger.RunPausedAttention, verdict.Indeterminate, ledger.ReasonLoss
	r.EndedAt = t.store.now()
	return true, t.PutRun(r)
}

// holdItem stops an item that may have gone on.
func (t *tx) holdItem(name [32]byte) (bool, error) {
	i, err := t.itemBy(name)
	if err != nil {
		return false, err
	}
	switch i.State {
	case ledger.ItemDone, ledger.ItemSkipped, ledger.ItemNeedsAttention:
		return false, nil
	case ledger.ItemOpen, ledger.ItemFailed:
	}
	i.Version++
	// It no longer waits for its old cause: only a confirmation or a decision on it lets it in.
	i.State, i.Reason, i.Cause, i.ActiveRun = ledger.ItemNeedsAttention, ledger.ReasonLoss, "", ""
	i.UpdatedAt = t.store.now()
	return true, t.PutItem(i)
}

// shorten keeps an event's evidence within its bound.
func shorten(s string) string { return s[:min(len(s), 4<<10)] }
