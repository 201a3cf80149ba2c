package badgerstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"keep-proxy/ledger"
)

const (
	// sliceBytes and sliceValues are how much is read of a store that works meanwhile
	// before others have their turn.
	sliceBytes  = 256 << 10
	sliceValues = 256
	// busyShare is how many times a slice's duration those who commit get for themselves, busyRest the least.
	busyShare = 8
	busyRest  = 5 * time.Millisecond
	// idleWork is how long it works before it rests half as long, in a store where nobody commits. Timers are too
	// coarse for a rest after each slice.
	idleWork = 5 * time.Millisecond
)

// Scrubbed counts what Scrub has read.
type Scrubbed struct {
	Values int   `json:"values"`
	Bytes  int64 `json:"bytes"`
	// Bodies counts the files of long bodies among it.
	Bodies int `json:"bodies"`
	// Damaged are the digests of bodies whose files are missing or damaged.
	Damaged []string `json:"damaged,omitempty"`
}

// Scrub reads all that is stored and holds it against its checksums, while the store works. It gives way to
// commits. A damaged value stops the store, as it does for any reader. A damaged body is counted: whoever reads it
// is refused, and nothing else depends on it. Each mutation's record goes to visit, which may keep it. Now and then
// progress is told how far it is, while nothing is held open. Both may be nil, and end it by an error.
func (s *Store) Scrub(ctx context.Context, visit func(*ledger.Mutation) error, progress func(Scrubbed) error) (done Scrubbed, err error) {
	w := s.newWalker(nil)
	at := scrubbing{visit: visit}
	for more := true; more; {
		at.files = at.files[:0]
		more, err = w.slice(ctx, at.value)
		if err == nil {
			err = s.scrubFiles(ctx, w, at.files, &at.Scrubbed)
		}
		if err != nil {
			return at.Scrubbed, fmt.Errorf("scrub: %w", err)
		}
		if progress == nil {
			continue
		}
		if err := progress(at.Scrubbed); err != nil {
			return at.Scrubbed, err
		}
	}
	return at.Scrubbed, nil
}

// scrubbing is a scrub at work.
type scrubbing struct {
	Scrubbed
	visit func(*ledger.Mutation) error
	// files are those of the bodies in the slice at work.
	files []bodyFile
}

// value takes one value whose checksum holds.
func (at *scrubbing) value(src snapshot, k, content []byte, whole bool) (err error) {
	at.Values++
	at.Bytes += int64(len(k) + len(content))
	switch {
	case k[0] == kMutation && at.visit != nil:
		if !whole {
			if content, err = src.get(k); err != nil {
				return err
			}
		}
		e, err := decodeMutation(k, content)
		if err != nil {
			return err
		}
		return at.visit(e.Mutation)
	case k[0] == kBody && whole:
		f, err := bodyFileOf(k, content)
		if f.size > 0 {
			at.files = append(at.files, f)
		}
		return err
	}
	return nil // The parts of a long value are values of their own.
}

// bodyFile is a body that is kept in a file.
type bodyFile struct {
	sum  [32]byte
	size int64
}

// bodyFileOf is the file of a stored body; its size is 0 if it is in none.
func bodyFileOf(k, content []byte) (f bodyFile, err error) {
	var h bodyHead
	if err := decode(k, content, &h); err != nil || !h.File || h.Lost {
		return f, err
	}
	return bodyFile{[32]byte(k[1:]), h.Size}, nil
}

func (s *Store) scrubFiles(ctx context.Context, w *walker, files []bodyFile, done *Scrubbed) error {
	for _, f := range files {
		err := checkBodyFile(s.config, f.sum, f.size, &resting{w: w, ctx: ctx})
		switch {
		case errors.Is(err, ledger.ErrDamaged):
			done.Damaged = append(done.Damaged, hex.EncodeToString(f.sum[:]))
		case err != nil:
			return err
		}
		done.Bodies++
		done.Bytes += f.size
	}
	return nil
}

// resting is a writer that keeps nothing and rests after each slice.
type resting struct {
	w   *walker
	ctx context.Context
	n   int
}

// Write implements io.Writer.
func (r *resting) Write(p []byte) (int, error) {
	if r.n += len(p); r.n >= sliceBytes {
		r.n = 0
		if err := r.w.rest(r.ctx); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// walker goes over the values of a store that works meanwhile, in slices. Each has a snapshot of its own: a long
// one would keep Badger from letting go of old data.
type walker struct {
	store  *Store
	prefix []byte
	next   []byte
	// since is when it last rested, commits what was synced before.
	since   time.Time
	commits uint64
}

func (s *Store) newWalker(prefix []byte) *walker {
	return &walker{store: s, prefix: prefix, next: prefix, since: time.Now(), commits: s.commits.Load()}
}

// slice calls fn with some values, whose checksums hold, then rests. For the head of a long value whole is false.
// It reports whether there is more.
func (w *walker) slice(ctx context.Context, fn func(src snapshot, k, content []byte, whole bool) error) (more bool, err error) {
	err = w.store.snapshot(func(src snapshot) error {
		c := src.cursor(w.prefix, false)
		defer c.close()
		bytes, n := 0, 0
		for c.seek(w.next); c.valid(); c.next() {
			k := slices.Clone(c.key())
			if bytes >= sliceBytes || n >= sliceValues {
				w.next, more = k, true
				return nil
			}
			sealed, err := c.sealed()
			if err != nil {
				return err
			}
			bytes, n = bytes+len(k)+len(sealed), n+1
			content, flags, err := unseal(k, sealed)
			if err != nil {
				return err
			}
			if err := fn(src, k, content, flags&flagSplit == 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	return more, w.rest(ctx)
}

// rest lets others work. If somebody commits, it rests at once and longer. Else it rests now and then, for half as
// long as it worked.
func (w *walker) rest(ctx context.Context) error {
	worked := time.Since(w.since)
	wait := worked / 2
	if n := w.store.commits.Load(); n != w.commits {
		w.commits, wait = n, max(busyShare*worked, busyRest)
	} else if worked < idleWork {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	w.since = time.Now()
	return nil
}
