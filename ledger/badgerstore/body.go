package badgerstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
)

var (
	pointBodyChunk = fault.New("badgerstore.body_chunk")
	pointBodyDone  = fault.New("badgerstore.body_done")
)

// bodyHead is stored under a body's digest: the content, or where its chunks are.
type bodyHead struct {
	Size   int64  `cbor:"1,keyasint"`
	Inline []byte `cbor:"2,keyasint,omitempty"`
	Upload uint64 `cbor:"3,keyasint,omitempty"`
	Chunks uint32 `cbor:"4,keyasint,omitempty"`
}

// pendingBody marks an upload that no record names yet; Sum is set once it is whole.
type pendingBody struct {
	Whole bool     `cbor:"1,keyasint"`
	Sum   [32]byte `cbor:"2,keyasint"`
}

func chunkKey(upload uint64, n uint32) []byte {
	return key(kChunk, binary.BigEndian.AppendUint64(nil, upload), binary.BigEndian.AppendUint32(nil, n))
}

// pendingBodies knows the whole uploads of this process that no record names.
type pendingBodies struct {
	mu      sync.Mutex
	uploads map[string]uint64
	next    uint64
}

func (p *pendingBodies) upload(sha256 string) (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u, ok := p.uploads[sha256]
	return u, ok
}

func (p *pendingBodies) begin() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return p.next
}

func (p *pendingBodies) add(sha256 string, upload uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uploads[sha256] = upload
}

func (p *pendingBodies) forget(sha256s []string) {
	if len(sha256s) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range sha256s {
		delete(p.uploads, s)
	}
}

// WriteBody implements ledger.Store. Content is cut into chunks, each synced with
// its own checksum; a read error or a dead ctx leaves nothing that a later start
// doesn't sweep.
func (s *Store) WriteBody(ctx context.Context, content io.Reader) (ledger.Body, error) {
	w := bodyWriter{store: s, upload: s.pending.begin(), hash: sha256.New()}
	buf := make([]byte, chunksAtOnce*chunkSize)
	for {
		n, err := io.ReadFull(content, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return ledger.Body{}, fmt.Errorf("body: %w", err)
		}
		last := err != nil
		if last && w.size == 0 && n == 0 {
			return ledger.Body{}, nil
		}
		w.hash.Write(buf[:n])
		w.size += int64(n)
		if last && w.chunks == 0 && n <= ledger.InlineBody {
			return w.finish(ctx, buf[:n])
		}
		if n > 0 {
			if err := w.write(ctx, buf[:n]); err != nil {
				return ledger.Body{}, err
			}
		}
		if last {
			return w.finish(ctx, nil)
		}
	}
}

type bodyWriter struct {
	store  *Store
	upload uint64
	hash   hash.Hash
	size   int64
	chunks uint32
}

// write adds chunks by one command.
func (w *bodyWriter) write(ctx context.Context, content []byte) error {
	if err := w.store.space.checkBody(); err != nil {
		return err
	}
	err := w.store.do(ctx, func(t *tx) error {
		if w.chunks == 0 {
			if err := t.layer.putValue(numbered(kPending, w.upload), pendingBody{}); err != nil {
				return err
			}
		}
		for chunk := range slices.Chunk(content, chunkSize) {
			if err := t.layer.put(chunkKey(w.upload, w.chunks), chunk); err != nil {
				return err
			}
			w.chunks++
		}
		return nil
	})
	pointBodyChunk.Pass()
	return err
}

// finish names the content by its digest. What is there already is kept, and the
// new copy dropped.
func (w *bodyWriter) finish(ctx context.Context, inline []byte) (ledger.Body, error) {
	var sum [32]byte
	w.hash.Sum(sum[:0])
	name := hex.EncodeToString(sum[:])
	err := w.store.do(ctx, func(t *tx) error {
		sk := key(kBody, sum[:])
		known, err := t.layer.has(sk)
		if err != nil {
			return err
		}
		if known {
			return t.dropUpload(w.upload)
		}
		t.uploaded = append(t.uploaded, upload{name, w.upload})
		head := bodyHead{Size: w.size, Inline: inline, Upload: w.upload, Chunks: w.chunks}
		return errors.Join(t.layer.putValue(sk, head),
			t.layer.putValue(numbered(kPending, w.upload), pendingBody{Whole: true, Sum: sum}))
	})
	pointBodyDone.Pass()
	if err != nil {
		return ledger.Body{}, err
	}
	return ledger.Body{SHA256: name, Size: w.size}, nil
}

// upload is a body that became whole.
type upload struct {
	sha256 string
	number uint64
}

// dropUpload removes the chunks of an upload and its mark.
func (t *tx) dropUpload(upload uint64) error {
	keys, err := t.layer.keys(numbered(kChunk, upload))
	if err != nil {
		return err
	}
	for _, k := range keys {
		t.layer.remove(k)
	}
	t.layer.remove(numbered(kPending, upload))
	return nil
}

// requireBody refuses a record whose long body was never written.
func (t *tx) requireBody(b ledger.Body) error {
	sum, err := hex.DecodeString(b.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("body %q: no SHA-256", b.SHA256)
	}
	known, err := t.layer.has(key(kBody, sum))
	if err != nil {
		return err
	}
	if !known {
		return fmt.Errorf("body %s: %w: write it first", b.SHA256, ledger.ErrNotFound)
	}
	return nil
}

// sweep removes the uploads that no record names. It runs before the store takes
// commands, one upload at a time.
func (s *Store) sweep(ctx context.Context) error {
	var uploads []uint64
	err := s.snapshot(func(src snapshot) error {
		src.each([]byte{kPending}, func(k []byte) bool {
			uploads = append(uploads, binary.BigEndian.Uint64(k[1:]))
			return true
		})
		return nil
	})
	for _, u := range uploads {
		if err != nil {
			break
		}
		err = s.do(ctx, func(t *tx) error { return t.sweepUpload(u) })
	}
	return err
}

func (t *tx) sweepUpload(upload uint64) error {
	pk := numbered(kPending, upload)
	content, err := t.layer.get(pk)
	if err != nil {
		return err
	}
	var p pendingBody
	if err := decode(pk, content, &p); err != nil {
		return err
	}
	if p.Whole {
		t.layer.remove(key(kBody, p.Sum[:]))
	}
	return t.dropUpload(upload)
}

// Body implements ledger.Store. The reader holds a snapshot until it is closed, and
// answers ledger.ErrDamaged in place of io.EOF if the content's digest is another.
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
	sum, err := hex.DecodeString(b.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("body %q: no SHA-256", b.SHA256)
	}
	if err := s.readable(); err != nil {
		return nil, err
	}
	r, err := s.openBody(sum)
	if err != nil {
		s.readers.Done()
		return nil, fmt.Errorf("body %s: %w", b.SHA256, err)
	}
	return r, nil
}

func (s *Store) openBody(sum []byte) (*bodyReader, error) {
	r := &bodyReader{store: s, txn: s.db.NewTransaction(false), hash: sha256.New()}
	copy(r.sum[:], sum)
	sk := key(kBody, sum)
	content, err := snapshot{r.txn}.get(sk)
	if err == nil {
		err = decode(sk, content, &r.head)
	}
	if err != nil {
		r.txn.Discard()
		return nil, err
	}
	r.rest = r.head.Inline
	return r, nil
}

type bodyReader struct {
	store *Store
	txn   *badger.Txn
	head  bodyHead
	sum   [32]byte
	hash  hash.Hash
	rest  []byte
	next  uint32
	once  sync.Once
}

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.next == r.head.Chunks {
			if [32]byte(r.hash.Sum(nil)) != r.sum {
				return 0, damaged(key(kBody, r.sum[:]), "the content has another digest")
			}
			return 0, io.EOF
		}
		chunk, err := snapshot{r.txn}.get(chunkKey(r.head.Upload, r.next))
		if err != nil {
			return 0, required(err, fmt.Sprintf("chunk %d of body %x", r.next, r.sum))
		}
		r.rest = chunk
		r.next++
	}
	n := copy(p, r.rest)
	r.hash.Write(r.rest[:n])
	r.rest = r.rest[n:]
	return n, nil
}

// Close lets the snapshot go.
func (r *bodyReader) Close() error {
	r.once.Do(func() {
		r.txn.Discard()
		r.store.readers.Done()
	})
	return nil
}

// Connector implements ledger.Store.
func (s *Store) Connector(ctx context.Context, hash string) (content []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.snapshot(func(src snapshot) error {
		content, err = src.get(named(kConnector, hash))
		return err
	})
	return content, err
}
