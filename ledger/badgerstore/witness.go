package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore/wal"
)

// The witness is a small file outside of the ledger's folder, Config.HighWaterFile. It says how far the log went,
// so that an older copy of the folder is found. It holds no content. It is written after each commit and synced
// each second. After a loss of power it may be a second behind.

// witnessSlack is the longest time from the first frame that the witness lacks to the last one.
const witnessSlack = 10 * time.Second

// witnessEvery is how often it is synced.
const witnessEvery = time.Second

// testimony is what the witness says.
type testimony struct {
	ledger string
	epoch  wal.Epoch
	// before is the epoch before, if epoch may have no frame yet.
	before  wal.Epoch
	number  uint64
	elapsed time.Duration
}

const testimonySize = 4096

var testimonyKey = []byte("witness")

func (t testimony) encode() []byte {
	b := make([]byte, sealSize, testimonySize)
	b = append(append(b, t.epoch[:]...), t.before[:]...)
	b = binary.BigEndian.AppendUint64(b, t.number)
	b = binary.BigEndian.AppendUint64(b, uint64(t.elapsed))
	b = append(b, t.ledger...)
	sealIn(testimonyKey, b, 0)
	return append(b, make([]byte, testimonySize-len(b))...)
}

func parseTestimony(b []byte) (t testimony, err error) {
	const fixed = 16 + 16 + 8 + 8
	content, _, err := unseal(testimonyKey, []byte(strings.TrimRight(string(b), "\x00")))
	if err != nil || len(content) < fixed {
		return t, errors.Join(err, errors.New("it isn't what this program wrote"))
	}
	t.epoch, t.before = wal.Epoch(content), wal.Epoch(content[16:])
	t.number = binary.BigEndian.Uint64(content[32:])
	t.elapsed = time.Duration(binary.BigEndian.Uint64(content[40:]))
	t.ledger = string(content[fixed:])
	return t, nil
}

// witness is the open file; a nil one is none.
type witness struct {
	file *os.File
	says testimony
	// due tells when it is to be synced, nil if it is.
	due    <-chan time.Time
	synced func(path string) error
}

// noWitness says that the log was kept with a witness, and none is configured or there.
func (c Config) noWitness() error {
	if c.HighWaterFile == "" {
		return fmt.Errorf("%w: the log %s was kept with a witness, and ledger.high_water_file names none", ledger.ErrDamaged, c.logPath())
	}
	return fmt.Errorf("%w: the log %s was kept with a witness, and %s is missing: mount its volume if that isn't mounted",
		ledger.ErrDamaged, c.logPath(), c.HighWaterFile)
}

// readWitness reads the file; nil if there is none.
func (c Config) readWitness() (*testimony, error) {
	if c.HighWaterFile == "" {
		return nil, nil
	}
	b, err := os.ReadFile(c.HighWaterFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: witness: %w", ledger.ErrUnavailable, err)
	}
	t, err := parseTestimony(b)
	if err != nil {
		return nil, fmt.Errorf("%w: witness %s: %w", ledger.ErrDamaged, c.HighWaterFile, err)
	}
	return &t, nil
}

// checkWitness holds the witness against the log's end. witnessed says that the log was kept with one.
func (c Config) checkWitness(t *testimony, id string, l *wal.Log, witnessed bool) error {
	if t == nil {
		if witnessed {
			return c.noWitness()
		}
		return nil
	}
	log, file, last := c.logPath(), c.HighWaterFile, l.Last()
	since := t.elapsed // Unless the log has the first frame that the witness lacks.
	if h, ok := l.Head(t.number + 1); ok {
		since = h.Elapsed
	}
	switch {
	case t.ledger != id:
		return fmt.Errorf("%w: witness %s is that of ledger %s, not of %s", ledger.ErrForeign, file, t.ledger, id)
	case t.epoch != last.Epoch && (t.before != last.Epoch || t.number != last.Number):
		return fmt.Errorf("%w: the log %s ends in another epoch than the witness %s: one of both is an older copy", ledger.ErrShortened, log, file)
	case t.number > last.Number:
		return fmt.Errorf("%w: the log %s ends at commit %d, and the witness %s saw commit %d: the folder is an older copy",
			ledger.ErrShortened, log, last.Number, file, t.number)
	case t.epoch == last.Epoch && t.number < last.Number && last.Elapsed-since > witnessSlack:
		return fmt.Errorf("%w: the witness %s lacks what the log %s has since commit %d, the last of it %v later: the witness is an older copy",
			ledger.ErrShortened, file, log, t.number, last.Elapsed-since)
	}
	return nil
}

// openWitness names the epoch that is to begin, before its first frame; nil if none is configured.
func (c Config) openWitness(id string, last wal.Head, epoch wal.Epoch) (*witness, error) {
	if c.HighWaterFile == "" {
		return nil, nil
	}
	dir := filepath.Dir(c.HighWaterFile)
	w := &witness{says: testimony{ledger: id, epoch: epoch, before: last.Epoch, number: last.Number}}
	err := errors.Join(os.MkdirAll(dir, 0o700), writeSynced(c.HighWaterFile, w.says.encode()), syncAbove(dir))
	if err == nil {
		w.file, err = os.OpenFile(c.HighWaterFile, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: witness: %w", ledger.ErrUnavailable, err)
	}
	w.synced = c.synced
	return w, nil
}

// follow notes the newest frame. It is durable a second later.
func (w *witness) follow(h wal.Head) error {
	if w == nil {
		return nil
	}
	w.says.before, w.says.number, w.says.elapsed = wal.Epoch{}, h.Number, h.Elapsed
	if _, err := w.file.WriteAt(w.says.encode(), 0); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	if w.due == nil {
		w.due = time.After(witnessEvery)
	}
	return nil
}

// syncDue tells when it is to be synced.
func (w *witness) syncDue() <-chan time.Time {
	if w == nil {
		return nil
	}
	return w.due
}

// sync makes durable what it says.
func (w *witness) sync() error {
	w.due = nil
	err := datasync(w.file)
	if err == nil && w.synced != nil {
		err = w.synced(w.file.Name())
	}
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	return nil
}

func (w *witness) close() error {
	if w == nil {
		return nil
	}
	return errors.Join(w.sync(), w.file.Close())
}
