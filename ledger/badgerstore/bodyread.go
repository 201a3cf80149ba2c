package badgerstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"

	"keep-proxy/ledger"
)

// Body implements ledger.Store. The reader answers ledger.ErrDamaged in place of
// io.EOF if the content's digest is another.
func (s *Store) Body(ctx context.Context, b ledger.Body) (io.ReadCloser, error) {
	if b.Dropped {
		return nil, ledger.ErrBodyDropped
	}
	if b.SHA256 == "" {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sum, err := bodySum(b)
	if err != nil {
		return nil, err
	}
	if err := s.readable(); err != nil {
		return nil, err
	}
	r, err := s.openBody(sum)
	if err != nil {
		s.readers.Done()
		return nil, fmt.Errorf("body %s: %w", b.SHA256, err)
	}
	if r.whole() {
		return wholeBody{bytes.NewReader(r.rest), r.rest}, r.Close()
	}
	return r, nil
}

// wholeBody is short content that was found whole.
type wholeBody struct {
	*bytes.Reader
	content []byte
}

// Whole returns the content, for who would read it into memory. It is the caller's.
func (b wholeBody) Whole() []byte { return b.content }

// Close implements io.Closer.
func (wholeBody) Close() error { return nil }

// whole reports whether all of the content is in memory and has its digest. Where the
// digest is another, reading tells.
func (r *bodyReader) whole() bool {
	return r.file == nil && len(r.rest) > 0 &&
		int64(len(r.rest)) == r.head.Size && sum256(r.rest) == r.sum
}

func (s *Store) openBody(sum []byte) (*bodyReader, error) {
	r := &bodyReader{store: s}
	copy(r.sum[:], sum)
	if err := r.find(); err != nil {
		return nil, err
	}
	return r, nil
}

// bodyReader reads a body from where its head says it is.
type bodyReader struct {
	store *Store
	head  bodyHead
	sum   [32]byte
	hash  hash.Hash
	file  *os.File
	// block is what the file is read into, failed why no more of it is.
	block  []byte
	failed error
	rest   []byte
	once   sync.Once
}

func (r *bodyReader) find() error {
	sk := key(kBody, r.sum[:])
	err := r.store.snapshot(func(src snapshot) error {
		content, err := src.get(sk)
		if err == nil {
			err = decode(sk, content, &r.head)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.rest = r.head.Inline
	switch {
	case r.head.Lost:
		return ledger.ErrBodyDropped
	case r.head.File:
		return r.open()
	}
	return nil
}

// inEngine stops the store if a value is damaged. A damaged file doesn't: nothing else depends on it.
func (r *bodyReader) inEngine(err error) error {
	if isDamage(err) {
		r.store.poison(err)
	}
	return err
}

// fileBlock is how much of a file is read at once.
const fileBlock = 64 << 10

// open opens the file of a long content. That is bounded, as is reading it. Content in Badger is read without a
// bound, as records are outside of commands. A goroutine would cost more than the read.
func (r *bodyReader) open() error {
	opened := make(chan *os.File, 1) // One that comes too late is closed as nobody has it.
	err := r.store.bounded(&aRead, func() error {
		f, err := openBodyFile(r.store.config, r.sum, r.head.Size)
		if err == nil {
			opened <- f
		}
		return err
	})
	if err == nil {
		r.file = <-opened
	}
	return err
}

// readFile reads content that is a file. A read that hangs keeps the block, and nobody else's
// memory.
func (r *bodyReader) readFile(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.failed != nil {
			return 0, r.failed
		}
		if r.block == nil {
			r.block = make([]byte, fileBlock)
		}
		file, sum, block, read := r.file, r.sum, r.block, make(chan int, 1)
		r.failed = r.store.bounded(&aRead, func() error {
			n, err := file.Read(block)
			read <- n
			return bodyError(sum, err)
		})
		if r.failed != nil {
			return 0, r.failed
		}
		r.rest = block[:<-read]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (n int, err error) {
	if r.file != nil {
		n, err = r.readFile(p)
	} else {
		n, err = r.readValue(p)
	}
	if r.hash == nil {
		r.hash = sha256.New()
	}
	r.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && [32]byte(r.hash.Sum(nil)) != r.sum {
		err = damaged(key(kBody, r.sum[:]), "the content has another digest")
	}
	if r.file == nil {
		err = r.inEngine(err)
	}
	return n, err
}

// readValue reads content that is kept in Badger.
func (r *bodyReader) readValue(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close closes the file.
func (r *bodyReader) Close() error {
	var err error
	r.once.Do(func() {
		if r.file != nil {
			err = r.file.Close()
		}
		r.store.readers.Done()
	})
	return err
}
