package wal

import (
	"bytes"
	"fmt"
	"slices"
)

// Open reads the log in f and makes its newest frame durable.
func Open(f File) (*Log, error) {
	l := &Log{file: f}
	if err := l.readBegin(); err != nil {
		return nil, err
	}
	found, err := l.scan()
	if err != nil {
		return nil, err
	}
	if l.live, err = tail(found); err != nil || len(l.live) == 0 {
		return l, err
	}
	newest := &l.live[len(l.live)-1]
	l.next = newest.end()
	content, err := l.content(*newest)
	if err != nil {
		return nil, err
	}
	return l, l.write(newest.at, newest.encode(l.key, content))
}

// scanned is how many bytes of the ring a scan reads at once.
const scanned = 128 << 10

// scan finds each frame of which a copy is whole.
func (l *Log) scan() (map[uint64]placed, error) {
	found := map[uint64]placed{}
	block := make([]byte, min(scanned, l.size))
	for at, from := int64(0), int64(-scanned); at < l.size; {
		if at >= from+int64(len(block)) {
			block, from = block[:min(scanned, l.size-at)], at
			if _, err := l.file.ReadAt(block, begin+at); err != nil {
				return nil, cut(err)
			}
		}
		if !bytes.HasPrefix(block[at-from:], l.key) {
			at += page
			continue
		}
		p, copied, err := l.copyAt(at)
		if err != nil {
			return nil, err
		}
		if copied == nil {
			at += page
			continue
		}
		if known, ok := found[p.Number]; ok && known.Digest != p.Digest {
			return nil, fmt.Errorf("%w: it has two frames %d", ErrDamaged, p.Number)
		}
		found[p.Number] = p
		at += span(p.length) / 2
		l.filled = at
	}
	return found, nil
}

// copyAt reads the copy of a frame that begins there, nil if none does.
func (l *Log) copyAt(at int64) (placed, []byte, error) {
	head := make([]byte, headSize)
	if _, err := l.file.ReadAt(head, begin+at); err != nil {
		return placed{}, nil, cut(err)
	}
	p, ok := begins(l.key, head)
	one := span(p.length) / 2
	if !ok || at+one > l.size || at != p.at && at != p.at+one {
		return placed{}, nil, nil
	}
	b := make([]byte, headSize+p.length)
	if _, err := l.file.ReadAt(b, begin+at); err != nil {
		return placed{}, nil, cut(err)
	}
	if !p.decode(b) {
		return placed{}, nil, nil
	}
	return p, b, nil
}

// tail is the newest frame and those before it without a hole, oldest first. What the newest was written over
// doesn't count: it was free, and a crash may have left a part.
func tail(found map[uint64]placed) (frames []placed, err error) {
	newest := uint64(0)
	for n := range found {
		newest = max(newest, n)
	}
	for n := newest; n > 0; n-- {
		p, ok := found[n]
		if !ok {
			break
		}
		if len(frames) > 0 && frames[len(frames)-1].Before != p.Digest {
			return nil, fmt.Errorf("%w: frame %d doesn't follow frame %d", ErrDamaged, n+1, n)
		}
		if len(frames) > 0 && p.at < frames[0].end() && frames[0].at < p.end() {
			break
		}
		frames = append(frames, p)
	}
	slices.Reverse(frames)
	return frames, nil
}

// content reads a frame's content from either copy.
func (l *Log) content(p placed) ([]byte, error) {
	for _, at := range []int64{p.at, p.at + span(p.length)/2} {
		is, b, err := l.copyAt(at)
		if err != nil {
			return nil, err
		}
		if b != nil && is.Digest == p.Digest {
			return b[headSize:], nil
		}
	}
	return nil, fmt.Errorf("%w: frame %d can't be read any more", ErrDamaged, p.Number)
}

// Replay hands the frames that must stay to fn, oldest first. fn may keep the content.
func (l *Log) Replay(fn func(h Head, content []byte) error) error {
	for _, p := range l.live {
		content, err := l.content(p)
		if err != nil {
			return err
		}
		if err := fn(p.Head, content); err != nil {
			return err
		}
	}
	return nil
}
