package badgerstore

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore/wal"
)

// logSize is the length of the log's ring in a new ledger, in bytes.
const logSize = 64 << 20

func (c Config) logPath() string { return filepath.Join(c.Dir, "log") }

// logFile is the log's file, whose syncs a test can watch.
type logFile struct {
	*os.File
	synced func(path string) error
}

// Sync implements wal.File.
func (f logFile) Sync() error {
	err := datasync(f.File)
	if err == nil && f.synced != nil {
		err = f.synced(f.Name())
	}
	return err
}

// Allocate implements wal.File.
func (f logFile) Allocate(size int64) error {
	err := allocate(f.File, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = f.Truncate(size)
	}
	return err
}

// createLog makes an empty log whose first frame follows commit after.
func createLog(c Config, after uint64) (err error) {
	f, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	file := logFile{f, c.synced}
	if err := errors.Join(wal.Create(file, c.ringSize(), after), f.Close(), syncDir(c.Dir)); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// openLog opens the log; one that is missing or damaged is ledger.ErrDamaged.
func openLog(c Config) (*wal.Log, error) {
	f, err := os.OpenFile(c.logPath(), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no log %s", ledger.ErrDamaged, c.logPath())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: log: %w", ledger.ErrUnavailable, err)
	}
	l, err := wal.Open(logFile{f, c.synced})
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, wal.ErrDamaged):
		err = fmt.Errorf("%w: log %s: %w", ledger.ErrDamaged, c.logPath(), err)
	default:
		err = fmt.Errorf("%w: log %s: %w", ledger.ErrUnavailable, c.logPath(), err)
	}
	return nil, errors.Join(err, f.Close())
}

func newEpoch() (e wal.Epoch) {
	_, _ = rand.Read(e[:]) // It never fails.
	return e
}

// frame is what the log keeps of a commit beside its number and its epoch.
type frame struct {
	tip tip
	// begins marks the first frame of an epoch, and before is the epoch before.
	begins bool
	before wal.Epoch
	// witnessed says that a witness goes with the log.
	witnessed bool
	// clean says that the ledger was closed with it, and Badger had all before it.
	clean   bool
	entries []entry
}

const (
	flagBegins = 1 << iota
	flagWitnessed
	flagClean
)

// encode writes flags, the epoch before, the tip, and the changes. A change is the lengths of key and value, then
// both. The value's length is one more: 0 is a removal.
func (f frame) encode() []byte {
	size := 1 + len(f.before) + 8 + 8 + len(f.tip.Hash)
	for _, e := range f.entries {
		size += entryOverhead + len(e.key) + len(e.sealed)
	}
	b := make([]byte, 1, size)
	for flag, set := range map[byte]bool{flagBegins: f.begins, flagWitnessed: f.witnessed, flagClean: f.clean} {
		if set {
			b[0] |= flag
		}
	}
	if f.begins {
		b = append(b, f.before[:]...)
	}
	b = binary.BigEndian.AppendUint64(b, f.tip.Seq)
	b = append(b, f.tip.Hash[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(f.tip.At))
	for _, e := range f.entries {
		b = binary.AppendUvarint(b, uint64(len(e.key)))
		if e.sealed == nil {
			b = append(append(b, 0), e.key...)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(e.sealed))+1)
		b = append(append(b, e.key...), e.sealed...)
	}
	return b
}

var errFrame = fmt.Errorf("%w: a frame of the log can't be read although its digest is right", ledger.ErrDamaged)

// parseFrame reads what encode wrote.
func parseFrame(number uint64, b []byte) (f frame, err error) {
	take := func(n uint64) (out []byte) {
		if n > uint64(len(b)) {
			err = errFrame
			return make([]byte, min(n, 64))
		}
		out, b = b[:n:n], b[n:]
		return out
	}
	length := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			err = errFrame
			return 0
		}
		b = b[size:]
		return n
	}
	flags := take(1)[0]
	f.begins, f.witnessed, f.clean = flags&flagBegins != 0, flags&flagWitnessed != 0, flags&flagClean != 0
	if f.begins {
		f.before = wal.Epoch(take(uint64(len(f.before))))
	}
	f.tip.Commit = number
	f.tip.Seq = binary.BigEndian.Uint64(take(8))
	f.tip.Hash = [32]byte(take(32))
	f.tip.At = int64(binary.BigEndian.Uint64(take(8)))
	for err == nil && len(b) > 0 {
		key, value := length(), length()
		e := entry{key: take(key)}
		if value > 0 {
			e.sealed = take(value - 1)
		}
		f.entries = append(f.entries, e)
	}
	return f, err
}

// elapsed is the time in the epoch.
func (s *Store) elapsed() time.Duration { return s.config.Now().Mono - s.process.Started.Mono }
