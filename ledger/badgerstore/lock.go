package badgerstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
)

// ledgerLock is held on ledger.lock while the ledger is open. Another lock lies beside the witness, since a copy
// that is tried out may name the same one. The kernel drops both with the process, so a crash leaves none behind.
type ledgerLock struct {
	folder, water *os.File
}

// lockLedger takes the lock; a taken one is ledger.ErrLocked and names the holder.
func lockLedger(c Config) (*ledgerLock, error) {
	var l ledgerLock
	var err error
	l.folder, err = lockFile(filepath.Join(c.Dir, "ledger.lock"), c.Now().Wall, "folder "+c.Dir, "stop it, or go through its admin API")
	if err != nil {
		return nil, err
	}
	if path := c.HighWaterFile; path != "" {
		// The file itself is replaced by a new one now and then.
		err = os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			l.water, err = lockFile(path+".lock", c.Now().Wall, "witness "+path, "stop it, or use another ledger.high_water_file for this folder")
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.release())
	}
	return &l, nil
}

// lockFile locks a file, for the sake of what.
func lockFile(path string, now time.Time, what, advice string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ledger: %s can't be written: %w", what, err)
	}
	err = flock(f)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder := lockHolder(f)
		return nil, errors.Join(fmt.Errorf("%w: %s is held by %s; %s", ledger.ErrLocked, what, holder, advice), f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	text := fmt.Sprintf("process %d (%s), since %s\n", os.Getpid(), commandName(), now.UTC().Format(time.RFC3339))
	if err := errors.Join(f.Truncate(0), writeAll(f, text)); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

func writeAll(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// A forked process can still hold a lock until it begins its own program. So whoever takes one waits a moment.
const (
	lockTries = 20
	lockPause = 10 * time.Millisecond
)

func flock(f *os.File) error {
	return awaitLock(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) },
		func(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) })
}

// awaitLock takes a lock, again for a moment while it is taken.
func awaitLock(take func() error, taken func(error) bool) (err error) {
	for range lockTries {
		if err = take(); !taken(err) {
			return err
		}
		<-time.After(lockPause)
	}
	return err
}

// lockHolder reads what the holder wrote; it may not have written yet.
func lockHolder(f *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	text := strings.TrimSpace(string(b))
	if err != nil || text == "" {
		return "another process"
	}
	return text
}

// commandName is the program and its subcommand; further arguments may be secret.
func commandName() string {
	name := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		name += " " + os.Args[1]
	}
	return name
}

func (l *ledgerLock) release() error {
	err := l.folder.Close()
	if l.water != nil {
		err = errors.Join(err, l.water.Close())
	}
	return err
}
