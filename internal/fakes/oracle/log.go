package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// ErrLocked is wrapped by the error of [Open] when another writer has the file.
var ErrLocked = errors.New("oracle: log has another writer")

// Log is the writing end of a file. It is safe for concurrent use.
type Log struct {
	path   string
	now    func() time.Time
	reader *Reader

	mu     sync.Mutex
	file   *os.File
	failed error
}

// Open opens the file at path for appending, and makes it (mode 0600) if it
// does not exist. A torn last line is closed first. Times come from now; nil
// means [time.Now]. The file stays locked until [Log.Close] or the end of the
// process.
func Open(path string, now func() time.Time) (*Log, error) {
	if now == nil {
		now = time.Now
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("oracle: open log: %w", err)
	}
	if err := prepare(file); err != nil {
		return nil, errors.Join(fmt.Errorf("oracle: open log %s: %w", path, err), file.Close())
	}
	return &Log{path: path, now: now, reader: NewReader(path), file: file}, nil
}

// prepare locks the file, ends a torn last line, and makes the file's name
// durable.
func prepare(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := endTornLine(file); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file.Name()))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func endTornLine(file *os.File) error {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], info.Size()-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	_, err = file.Write([]byte{'\n'})
	return err
}

// Path returns the file's path.
func (l *Log) Path() string { return l.path }

// Append writes one event and stamps its time. When it returns nil for an
// effect or a kept result, the line is on stable storage. After an error
// nothing more can be appended, since nobody knows what the file holds.
func (l *Log) Append(e Event) error {
	e.At = l.now().UTC()
	if !e.Kind.known() {
		return fmt.Errorf("oracle: unknown kind %q", e.Kind)
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("oracle: encode event: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	if err := l.write(append(line, '\n'), e.Kind.synced()); err != nil {
		l.failed = fmt.Errorf("oracle: append to %s: %w", l.path, err)
	}
	return l.failed
}

// write puts the line into the file with a single call. So a reader in another process sees whole lines or an
// unfinished last one.
func (l *Log) write(line []byte, sync bool) error {
	if _, err := l.file.Write(line); err != nil {
		return err
	}
	if !sync {
		return nil
	}
	return l.file.Sync()
}

// Tally reads what is new in the file and counts the whole of it.
func (l *Log) Tally() (Tally, error) { return l.reader.Tally() }

// Close releases the file. Appending afterwards is an error.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.failed, os.ErrClosed) {
		return nil
	}
	l.failed = fmt.Errorf("oracle: log %s: %w", l.path, os.ErrClosed)
	return l.file.Close()
}
