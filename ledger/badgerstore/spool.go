package badgerstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
)

// spool is content in a file of spool/ until it is kept or given up.
type spool struct {
	store *Store
	file  *os.File
	hash  hash.Hash
	size  int64
	// broken is the first error of a write.
	broken error
	// closed says that the file is given up.
	closed bool
	// placed says that the file lies in bodies/ now; held, that it is pending there
	// on behalf of this spool.
	placed, held bool
	// keeps is the digest of a body that isn't swept on behalf of this spool.
	keeps string
	body  ledger.Body
}

var _ ledger.Spool = (*spool)(nil)

// Spool implements ledger.Store.
func (s *Store) Spool() (ledger.Spool, error) {
	f, err := s.spoolFile()
	if err != nil {
		return nil, err
	}
	return f, nil
}

// spoolFile opens a new file. It doesn't hold the store open: one that is closed keeps
// nothing any more.
func (s *Store) spoolFile() (*spool, error) {
	if err := s.Healthy(); err != nil {
		return nil, err
	}
	if err := s.space.checkBody(); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.config.spoolDir(), "in-*")
	if err != nil {
		return nil, writeError(err)
	}
	return &spool{store: s, file: f, hash: sha256.New()}, nil
}

// writeError names a full disk, which will pass.
func writeError(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", ledger.ErrLowSpace, err)
	}
	return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
}

// Write implements io.Writer.
func (f *spool) Write(p []byte) (int, error) {
	if f.broken != nil {
		return 0, f.broken
	}
	if f.broken = f.store.space.checkBody(); f.broken != nil {
		return 0, f.broken
	}
	n, err := f.file.Write(p)
	f.hash.Write(p[:n])
	f.size += int64(n)
	if err != nil {
		f.broken = writeError(err)
	}
	return n, f.broken
}

// ReadAt implements io.ReaderAt.
func (f *spool) ReadAt(p []byte, off int64) (int, error) { return f.file.ReadAt(p, off) }

// Size implements ledger.Spool.
func (f *spool) Size() int64 { return f.size }

// Body implements ledger.Spool.
func (f *spool) Body() ledger.Body {
	if f.size == 0 {
		return ledger.Body{}
	}
	return ledger.Body{SHA256: hex.EncodeToString(f.hash.Sum(nil)), Size: f.size}
}

// Keep implements ledger.Spool. A second Keep answers as the first.
func (f *spool) Keep(ctx context.Context) (ledger.Body, error) {
	if f.placed && f.broken == nil {
		return f.body, nil
	}
	return f.keep(ctx)
}

func (f *spool) keep(ctx context.Context) (ledger.Body, error) {
	if f.broken != nil {
		return ledger.Body{}, f.broken
	}
	if f.size <= ledger.InlineBody {
		content := make([]byte, f.size)
		if _, err := f.file.ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
			return ledger.Body{}, fmt.Errorf("body: %w", err)
		}
		return f.store.WriteBody(ctx, bytes.NewReader(content))
	}
	pointBodyChunk.Pass()
	if err := errors.Join(ctx.Err(), f.store.Healthy()); err != nil {
		return ledger.Body{}, err
	}
	if err := f.store.bounded(&aSync, func() error { return datasync(f.file) }); err != nil {
		f.broken = writeError(fmt.Errorf("body: sync: %w", err))
		return ledger.Body{}, f.broken
	}
	body := f.Body()
	going := f.hold(body.SHA256)
	_, known, err := f.store.bodyNamed(body.SHA256)
	known = known && !going
	if err != nil {
		return body, err
	}
	if st, err := os.Stat(f.store.config.bodyPath(body.SHA256)); known && err == nil && st.Size() == body.Size {
		return body, nil
	}
	if err := f.store.pending.place(f.file.Name(), body.SHA256, body.Size, known); err != nil {
		return ledger.Body{}, writeError(fmt.Errorf("body: %w", err))
	}
	f.placed, f.held, f.body = true, !known, body
	if err := f.store.bounded(&aSync, func() error { return syncDir(f.store.config.bodiesDir()) }); err != nil {
		f.broken = writeError(fmt.Errorf("body: sync: %w", err))
		return ledger.Body{}, f.broken
	}
	pointBodyDone.Pass()
	return body, nil
}

// bodyNamed is bodyAt in a snapshot of its own. A file has a value only once a record named it.
func (s *Store) bodyNamed(sha256 string) (h bodyHead, known bool, err error) {
	sum, err := hex.DecodeString(sha256)
	if err != nil {
		return h, false, err
	}
	err = s.snapshot(func(src snapshot) error {
		h, known, err = bodyAt(src, sum)
		return err
	})
	return h, known, err
}

// Close implements ledger.Spool.
func (f *spool) Close() error {
	if f.closed {
		return nil
	}
	var err error
	// After a failed commit only a restart tells whether its record is kept: its body stays until then.
	if f.held && f.store.Healthy() == nil {
		sha256 := f.body.SHA256
		err = f.store.pending.release(sha256, func() (bool, error) {
			_, known, err := f.store.bodyNamed(sha256)
			return known, err
		})
	}
	f.drop()
	return err
}

// hold keeps a body of this digest from being swept until the spool is given up. It
// reports whether it is being swept already.
func (f *spool) hold(sha256 string) (going bool) {
	if f.keeps == "" {
		f.keeps = sha256
		return f.store.pending.hold(sha256)
	}
	return f.store.pending.isGoing(sha256)
}

// drop lets go of the file, and removes it unless it is a body by now.
func (f *spool) drop() {
	name := f.file.Name()
	_ = f.file.Close() // what must last was synced
	if !f.placed {
		_ = os.Remove(name) // the next start removes it otherwise
	}
	if f.keeps != "" {
		f.store.pending.letGo(f.keeps)
		f.keeps = ""
	}
	f.closed = true
}
