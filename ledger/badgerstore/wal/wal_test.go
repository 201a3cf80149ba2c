package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// disk is a file of which a crash keeps what was synced, and of each page that was written since
// either content.
type disk struct {
	written, synced []byte
	// fails is called before each call.
	fails func(call string) error
}

func (d *disk) ask(call string) error {
	if d.fails == nil {
		return nil
	}
	return d.fails(call)
}

func (d *disk) ReadAt(b []byte, at int64) (int, error) {
	if err := d.ask("read"); err != nil {
		return 0, err
	}
	if at >= int64(len(d.written)) {
		return 0, io.EOF
	}
	n := copy(b, d.written[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (d *disk) WriteAt(b []byte, at int64) (int, error) {
	err := d.ask("write")
	if err != nil {
		b = b[:len(b)/2] // A failed write may leave a part of it.
	}
	if more := int(at) + len(b) - len(d.written); more > 0 {
		d.written = append(d.written, make([]byte, more)...)
	}
	return copy(d.written[at:], b), err
}

func (d *disk) Sync() error {
	if err := d.ask("sync"); err != nil {
		return err
	}
	d.synced = bytes.Clone(d.written)
	return nil
}

func (d *disk) Allocate(size int64) error {
	d.written = make([]byte, size)
	return d.ask("allocate")
}

func (d *disk) Close() error { return nil }

// crash drops of each page that isn't synced the new content, or keeps it, at random.
func (d *disk) crash(r *rand.Rand) *disk {
	after := bytes.Clone(d.synced)
	for at := 0; at < len(after); at += page {
		if r.IntN(2) == 0 {
			copy(after[at:at+page], d.written[at:])
		}
	}
	return &disk{written: after, synced: bytes.Clone(after)}
}

const small = begin + 32*page

func created(t *testing.T) *disk {
	t.Helper()
	d := new(disk)
	if err := Create(d, small, 0); err != nil {
		t.Fatal(err)
	}
	return d
}

func opened(t *testing.T, d *disk) *Log {
	t.Helper()
	l, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// said is what frame n holds in these tests.
func said(n uint64) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "frame %d ", n), 1+int(n%7)*100)
}

func write(t *testing.T, l *Log, n uint64) {
	t.Helper()
	h, err := l.Append(Head{Epoch: Epoch{1}, Elapsed: 2}, said(n))
	if err != nil || h.Number != n {
		t.Fatalf("frame %d: %d, %v", n, h.Number, err)
	}
}

// replayed are the numbers of the frames that a log has, each with what was written.
func replayed(t *testing.T, l *Log) (numbers []uint64) {
	t.Helper()
	if err := l.Replay(func(h Head, content []byte) error {
		if !bytes.Equal(content, said(h.Number)) || h.Epoch != (Epoch{1}) || h.Elapsed != 2 {
			t.Errorf("frame %d: %+v holds %q", h.Number, h, content)
		}
		numbers = append(numbers, h.Number)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return numbers
}

func TestWhatIsFreeIsOverwrittenAndNothingElse(t *testing.T) {
	t.Parallel()
	d := created(t)
	l := opened(t, d)
	for n := uint64(1); n <= 200; n++ {
		if n > 5 {
			l.Free(n - 5)
		}
		write(t, l, n)
		if n%50 == 0 {
			if got := replayed(t, l); !slices.Equal(got, []uint64{n - 4, n - 3, n - 2, n - 1, n}) {
				t.Fatalf("after frame %d it has %d", n, got)
			}
			l = opened(t, &disk{written: d.written})
			got := replayed(t, l)
			if len(got) < 5 || got[len(got)-1] != n || got[0] > n-4 {
				t.Fatalf("opened after frame %d it has %d", n, got)
			}
			d, l = &disk{written: d.written}, opened(t, d)
		}
	}
}

func TestAFullLogRefusesUntilFramesAreFree(t *testing.T) {
	t.Parallel()
	l := opened(t, created(t))
	n := uint64(0)
	for l.Fits(len(said(n + 1))) {
		n++
		write(t, l, n)
	}
	if _, err := l.Append(Head{}, said(n+1)); !errors.Is(err, ErrFull) || l.Used() > l.Size() {
		t.Fatalf("%v, with %d of %d bytes used", err, l.Used(), l.Size())
	}
	l.Free(3)
	write(t, l, n+1)
	if got := replayed(t, l); got[0] != 4 || got[len(got)-1] != n+1 {
		t.Errorf("it has %d", got)
	}
	if !opened(t, created(t)).Fits(l.Longest()) || l.Fits(l.Longest()+page) {
		t.Errorf("the longest frame isn't %d", l.Longest())
	}
}

// Of a frame that is written while power is lost nothing is left, or all. What was synced is there.
func TestACrashTearsTheLastFrameAlone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		d := created(t)
		l := opened(t, d)
		acknowledged := uint64(0)
		for range 4 {
			cut := acknowledged + 1 + uint64(r.IntN(12))
			for n := acknowledged + 1; n <= cut; n++ {
				l.Free(max(n, 4) - 4)
				write(t, l, n)
			}
			d.fails = func(call string) error {
				if call == "sync" {
					return errors.New("power is lost")
				}
				return nil
			}
			if _, err := l.Append(Head{Epoch: Epoch{1}, Elapsed: 2}, said(cut+1)); err == nil {
				t.Fatal("a frame that wasn't synced is acknowledged")
			}
			if _, err := l.Append(Head{}, nil); err == nil {
				t.Fatal("the log goes on after a sync that failed")
			}
			d = d.crash(r)
			l = opened(t, d)
			got := replayed(t, l)
			last := got[len(got)-1]
			if last < cut || last > cut+1 || got[0] > max(cut, 4)-3 {
				t.Fatalf("seed %d: %d frames were acknowledged, there are %d", seed, cut, got)
			}
			acknowledged = last
		}
	}
}

// The newest frame may not have been synced by its writer.
func TestTheNewestFrameIsDurableOnceItIsOpened(t *testing.T) {
	t.Parallel()
	d := created(t)
	write(t, opened(t, d), 1)
	unsynced := &disk{written: d.written, synced: bytes.Clone(created(t).synced)}
	opened(t, unsynced)
	if got := replayed(t, opened(t, &disk{written: unsynced.synced})); !slices.Equal(got, []uint64{1}) {
		t.Errorf("it has %d", got)
	}
}

func TestNoSingleDamageTakesAFrame(t *testing.T) {
	t.Parallel()
	d := created(t)
	l := opened(t, d)
	for n := uint64(1); n <= 6; n++ {
		write(t, l, n)
	}
	want := []uint64{1, 2, 3, 4, 5, 6}
	for at := 0; at < begin+int(l.next); at += 397 {
		hurt := &disk{written: bytes.Clone(d.written)}
		hurt.written[at] ^= 0x10
		if got := replayed(t, opened(t, hurt)); !slices.Equal(got, want) {
			t.Fatalf("a flipped bit at %d leaves %d", at, got)
		}
	}
	for at := 0; at < begin+int(l.next); at += page {
		hurt := &disk{written: bytes.Clone(d.written)}
		clear(hurt.written[at : at+page])
		if got := replayed(t, opened(t, hurt)); !slices.Equal(got, want) {
			t.Fatalf("an empty page at %d leaves %d", at, got)
		}
	}
}

// Frames before one that is gone don't count: whoever opens the log must know them from elsewhere.
func TestAHoleEndsTheTail(t *testing.T) {
	t.Parallel()
	d := created(t)
	l := opened(t, d)
	for n := uint64(1); n <= 6; n++ {
		write(t, l, n)
	}
	gone := l.live[2]
	clear(d.written[begin+gone.at : begin+gone.end()])
	l = opened(t, d)
	if got := replayed(t, l); !slices.Equal(got, []uint64{4, 5, 6}) {
		t.Errorf("without frame 3 it has %d", got)
	}
	if first := l.First(); first != 4 {
		t.Errorf("it begins with %d", first)
	}
}

// An older copy of a part of the disk may hold a whole frame of the same number, but not the one that was followed.
func TestAFrameThatTheNextOneDoesNotFollowIsDamage(t *testing.T) {
	t.Parallel()
	d := created(t)
	l := opened(t, d)
	for n := uint64(1); n <= 4; n++ {
		write(t, l, n)
	}
	other := l.live[1]
	copy(d.written[begin+other.at:], other.encode(l.key, bytes.Repeat([]byte("x"), other.length)))
	if _, err := Open(d); !errors.Is(err, ErrDamaged) {
		t.Errorf("it opened with %v", err)
	}
}

func TestContentThatLooksLikeAFrameIsNone(t *testing.T) {
	t.Parallel()
	d := created(t)
	other := opened(t, created(t))
	write(t, other, 1)
	forged := placed{Head{Number: 9}, 3 * page, 1}
	l := opened(t, d)
	// It lies on a page of its own within the content.
	content := append(make([]byte, page-headSize), forged.encode(other.key, []byte("x"))...)
	if _, err := l.Append(Head{}, content); err != nil {
		t.Fatal(err)
	}
	if last := opened(t, d).Last(); last.Number != 1 {
		t.Errorf("the newest frame is %d", last.Number)
	}
}

func TestADamagedOrCutLogIsRefused(t *testing.T) {
	t.Parallel()
	d := created(t)
	l := opened(t, d)
	write(t, l, 1)
	write(t, l, 2)
	for name, hurt := range map[string]func(b []byte) []byte{
		"no beginning":  func(b []byte) []byte { clear(b[:begin]); return b },
		"half the file": func(b []byte) []byte { return b[:len(b)/2] },
		"an empty file": func([]byte) []byte { return nil },
		"another frame ": func(b []byte) []byte {
			p := l.live[0]
			p.Elapsed++
			copy(b[begin+p.at:], p.encode(l.key, said(1))[:page])
			return b
		},
	} {
		if _, err := Open(&disk{written: hurt(bytes.Clone(d.written))}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A read error is never an end of the log, and what fails in opening isn't believed.
func TestEachErrorOfTheDiskIsAnError(t *testing.T) {
	t.Parallel()
	d := created(t)
	l := opened(t, d)
	for n := uint64(1); n <= 3; n++ {
		write(t, l, n)
	}
	broken := errors.New("input/output error")
	for at := range 1000 {
		calls := 0
		hurt := &disk{written: bytes.Clone(d.written), fails: func(string) error {
			if calls++; calls == at+1 {
				return broken
			}
			return nil
		}}
		_, err := Open(hurt)
		if calls <= at {
			if at < 10 {
				t.Fatalf("opening takes %d calls", calls)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Fatalf("call %d fails: %v", at, err)
		}
		hurt.fails = nil
		if got := replayed(t, opened(t, hurt)); !slices.Equal(got, []uint64{1, 2, 3}) {
			t.Fatalf("after call %d failed it has %d", at, got)
		}
	}
	t.Fatal("opening never ends")
}
