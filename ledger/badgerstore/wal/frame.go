package wal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

const (
	// page is the unit of writing: frames begin on a page and fill whole ones.
	page = 4096
	// keySize is the length of the file's key, idSize that of an epoch, in bytes.
	keySize, idSize = 16, 16
	// headSize is what comes before the content: key, length, page in the ring, number, time, epoch, both digests.
	headSize = keySize + 4 + 4 + 8 + 8 + idSize + 2*sha256.Size
)

// Epoch identifies one opening of a ledger.
type Epoch [idSize]byte

// Digest is a SHA-256.
type Digest [sha256.Size]byte

// Head is a frame without its content.
type Head struct {
	// Number counts from 1, without gaps.
	Number uint64
	Epoch  Epoch
	// Elapsed is the time in the epoch, on a clock that never goes back.
	Elapsed time.Duration
	// Before is the digest of the frame before, zero for the first.
	Before Digest
	Digest Digest
}

// placed is a frame in the ring.
type placed struct {
	Head
	// at is where its first copy begins, counted from the ring's beginning.
	at     int64
	length int
}

func (p *placed) end() int64 { return p.at + span(p.length) }

// encode returns both copies of a frame, and sets its digest.
func (p *placed) encode(key, content []byte) []byte {
	one := span(p.length) / 2
	b := make([]byte, headSize, 2*one)
	at := copy(b, key)
	for _, n := range []uint64{uint64(p.length)<<32 | uint64(p.at/page), p.Number, uint64(p.Elapsed)} {
		binary.BigEndian.PutUint64(b[at:], n)
		at += 8
	}
	at += copy(b[at:], p.Epoch[:])
	copy(b[at:], p.Before[:])
	b = append(b, content...)
	p.Digest = digest(b, p.length)
	copy(b[headSize-sha256.Size:], p.Digest[:])
	b = b[:2*one]
	copy(b[one:], b[:one])
	return b
}

// digest covers a frame's head, but for the digest itself, and its content.
func digest(b []byte, length int) (d Digest) {
	sum := sha256.New()
	sum.Write(b[:headSize-sha256.Size])
	sum.Write(b[headSize : headSize+length])
	sum.Sum(d[:0])
	return d
}

// begins reads where a frame lies and how long its content is. False: no frame begins with b.
func begins(key, b []byte) (p placed, ok bool) {
	if len(b) < headSize || !bytes.Equal(b[:keySize], key) {
		return p, false
	}
	p.length = int(binary.BigEndian.Uint32(b[keySize:]))
	p.at = int64(binary.BigEndian.Uint32(b[keySize+4:])) * page
	return p, true
}

// decode reads a whole copy of the frame that begins there. False: it is torn or damaged.
func (p *placed) decode(b []byte) bool {
	at := b[keySize+8:]
	p.Number = binary.BigEndian.Uint64(at)
	p.Elapsed = time.Duration(binary.BigEndian.Uint64(at[8:]))
	p.Epoch = Epoch(at[16:])
	p.Before = Digest(at[16+idSize:])
	p.Digest = Digest(b[headSize-sha256.Size:])
	return p.Digest == digest(b, p.length)
}

// span is how much of the ring a frame takes with both copies, in bytes.
func span(length int) int64 {
	return 2 * int64((headSize+length+page-1)/page*page)
}
