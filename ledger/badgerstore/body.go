package badgerstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
)

var (
	pointBodyChunk = fault.New("badgerstore.body_chunk")
	pointBodyDone  = fault.New("badgerstore.body_done")
)

// bodyHead is stored under a body's digest: the content, or where it is.
type bodyHead struct {
	Size   int64  `cbor:"1,keyasint"`
	Inline []byte `cbor:"2,keyasint,omitempty"`
	// File says that the content is in a file of its own; see bodyFiles.
	File bool `cbor:"3,keyasint,omitempty"`
	// Lost says that the content is gone, and that its loss was accepted.
	Lost bool `cbor:"4,keyasint,omitempty"`
}

// WriteBody implements ledger.Store. Short content is stored as a value, longer content as a file. A read error or
// a dead ctx leaves nothing behind.
func (s *Store) WriteBody(ctx context.Context, content io.Reader) (ledger.Body, error) {
	short := make([]byte, ledger.InlineBody+1)
	n, err := io.ReadFull(content, short)
	switch {
	case errors.Is(err, io.EOF):
		return ledger.Body{}, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return s.writeInline(ctx, short[:n])
	case err != nil:
		return ledger.Body{}, fmt.Errorf("body: %w", err)
	}
	return s.writeFile(ctx, io.MultiReader(bytes.NewReader(short), content))
}

func (s *Store) writeFile(ctx context.Context, content io.Reader) (ledger.Body, error) {
	f, err := s.spoolFile()
	if err != nil {
		return ledger.Body{}, err
	}
	defer f.drop()
	if _, err := io.Copy(f, stopping{ctx, content}); err != nil {
		return ledger.Body{}, fmt.Errorf("body: %w", err)
	}
	body, err := f.keep(ctx)
	if err == nil && !f.held {
		// Others name it already. Nobody holds the spool until this one does, too.
		s.pending.add(body.SHA256)
	}
	return body, err
}

// stopping is a reader that ends with its context.
type stopping struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r stopping) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// writeInline stores short content under its digest. SweepBodies removes it if no record names it.
func (s *Store) writeInline(ctx context.Context, content []byte) (ledger.Body, error) {
	if err := s.space.checkBody(); err != nil {
		return ledger.Body{}, err
	}
	sum := sum256(content)
	name := hex.EncodeToString(sum[:])
	err := s.do(ctx, func(t *tx) error {
		sk := key(kBody, sum[:])
		_, known, err := bodyAt(t.layer, sum[:])
		if err != nil {
			return err
		}
		// Also if it is known: whoever names it must not find it swept.
		t.uploaded = append(t.uploaded, name)
		if known {
			return nil
		}
		return t.layer.putValue(sk, &bodyHead{Size: int64(len(content)), Inline: content})
	})
	pointBodyDone.Pass()
	if err != nil {
		return ledger.Body{}, err
	}
	return ledger.Body{SHA256: name, Size: int64(len(content))}, nil
}

// requireBody refuses a record whose long body was never written. A file gets its value here, with the first record
// that names it.
func (t *tx) requireBody(b ledger.Body) error {
	sum, err := bodySum(b)
	if err != nil {
		return err
	}
	head, known, err := bodyAt(t.layer, sum)
	if err != nil || known {
		return err
	}
	size, written := t.store.pending.file(b.SHA256)
	if head.Lost && !written {
		return nil // Its loss was accepted: records that name it go on without it.
	}
	if !written || size != b.Size {
		return fmt.Errorf("body %s: %w: write it first", b.SHA256, ledger.ErrNotFound)
	}
	t.referred = append(t.referred, b.SHA256)
	return t.layer.putValue(key(kBody, sum), &bodyHead{Size: size, File: true})
}

// bodyAt returns what is stored under the digest, and whether that can be had. Lost content is written anew.
func bodyAt(src source, sum []byte) (h bodyHead, known bool, err error) {
	sk := key(kBody, sum)
	content, err := src.get(sk)
	if errors.Is(err, ledger.ErrNotFound) {
		return h, false, nil
	}
	if err == nil {
		err = decode(sk, content, &h)
	}
	return h, err == nil && !h.Lost, err
}

func bodySum(b ledger.Body) ([]byte, error) {
	sum, err := hex.DecodeString(b.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("body %q: no SHA-256", b.SHA256)
	}
	return sum, nil
}

// sweepFiles makes the folders of long bodies, or cleans them up after a process
// before this one.
func (s *Store) sweepFiles() error {
	if err := makeBodyFolders(s.config); err != nil {
		return err
	}
	return s.snapshot(func(src snapshot) error {
		return sweepFiles(s.config, func(sum []byte) (bool, error) {
			_, known, err := bodyAt(src, sum)
			return known, err
		})
	})
}
