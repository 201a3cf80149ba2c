package badgerstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
)

// A long body is a file below bodies/, named by the digest of its content. The file and its folder are synced
// before a record that names it is written. The value under its digest is written with the first such record. Until
// then an empty file of the same name in spool/ marks it. By that mark the next start removes the body.

func (c Config) bodiesDir() string { return filepath.Join(c.Dir, "bodies") }

// spoolDir holds content on its way in, and the marks of bodies that no record names.
func (c Config) spoolDir() string { return filepath.Join(c.Dir, "spool") }

func (c Config) bodyPath(sha256 string) string { return filepath.Join(c.bodiesDir(), sha256) }

func (c Config) bodyMark(sha256 string) string { return filepath.Join(c.spoolDir(), sha256) }

// makeBodyFolders makes both folders and syncs them: an earlier process may have died before its sync.
func makeBodyFolders(c Config) error {
	for _, dir := range []string{c.bodiesDir(), c.spoolDir()} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("ledger folder: %w", err)
		}
	}
	if err := syncDir(c.Dir); err != nil {
		return fmt.Errorf("ledger folder: %w", err)
	}
	return nil
}

// openBodyFile opens the file of a body that a stored value names. If it is missing or has another length, the
// ledger is damaged.
func openBodyFile(c Config, sum [32]byte, size int64) (*os.File, error) {
	f, err := os.Open(c.bodyPath(hex.EncodeToString(sum[:])))
	if errors.Is(err, os.ErrNotExist) {
		return nil, damaged(key(kBody, sum[:]), "its file in bodies/ is missing")
	}
	if err != nil {
		return nil, bodyError(sum, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err))
	}
	st, err := f.Stat()
	if err == nil && st.Size() != size {
		err = damaged(key(kBody, sum[:]), fmt.Sprintf("its file in bodies/ has %d bytes instead of %d", st.Size(), size))
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, err
	}
	return f, nil
}

// checkBodyFile reads the whole file of a body and compares its digest; what it
// reads goes to w too.
func checkBodyFile(c Config, sum [32]byte, size int64, w io.Writer) error {
	f, err := openBodyFile(c, sum, size)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	return checkBody(sum, f, w)
}

// checkBody compares the digest of a body's content; what it reads goes to w too.
func checkBody(sum [32]byte, content io.Reader, w io.Writer) error {
	hash, from := sha256.New(), &lastError{Reader: content}
	if _, err := io.Copy(io.MultiWriter(hash, w), from); err != nil {
		if from.err != nil {
			err = bodyError(sum, err) // It isn't w that failed.
		}
		return fmt.Errorf("body %x: %w", sum, err)
	}
	if [32]byte(hash.Sum(nil)) != sum {
		return damaged(key(kBody, sum[:]), "its file in bodies/ has another digest")
	}
	return nil
}

// bodyError is what it means that the file of a body can't be opened or read. What the disk can't read is damage,
// as wrong content is. Nothing else depends on it, and only a person can go on without it.
func bodyError(sum [32]byte, err error) error {
	if !errors.Is(err, unix.EIO) {
		return err
	}
	return damaged(key(kBody, sum[:]), fmt.Sprintf("its file in bodies/ can't be read: %v", err))
}

// lastError is a reader that knows why it failed.
type lastError struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (r *lastError) Read(p []byte) (n int, err error) {
	if n, err = r.Reader.Read(p); err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// sweepFiles removes what an earlier process left in spool/. It also removes the bodies that the marks there name,
// unless a record names them.
func sweepFiles(c Config, named func(sum []byte) (bool, error)) error {
	left, err := os.ReadDir(c.spoolDir())
	if err != nil {
		return fmt.Errorf("ledger folder: %w", err)
	}
	for _, entry := range left {
		if err := sweepFile(c, entry.Name(), named); err != nil {
			return err
		}
	}
	return nil
}

func sweepFile(c Config, name string, named func(sum []byte) (bool, error)) error {
	if sum, err := hex.DecodeString(name); err == nil && len(sum) == sha256.Size {
		known, err := named(sum)
		if err != nil {
			return err
		}
		if !known {
			if err := removeIfThere(c.bodyPath(name)); err != nil {
				return err
			}
		}
	}
	return removeIfThere(filepath.Join(c.spoolDir(), name))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("ledger folder: %w", err)
	}
	return nil
}
