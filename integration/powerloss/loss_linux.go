package powerloss

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

const (
	pageSize   = 4096
	sectorSize = 512
)

// Loss is a loss of power.
type Loss struct {
	Shadow
	// Random chooses which pages and names that weren't durable are there all the same,
	// and tears pages between sectors. Without it none is.
	Random *rand.Rand
	// Durable says which files and folders, by their path in the folder, count as durable as
	// they are. nil: none.
	Durable func(path string, folder bool) bool

	// actual finds files as the program left them.
	actual map[string]string
	// moved says which renames and removals that weren't durable are made all the same.
	moved map[string]bool
}

// Leave builds what is left of the folder from at to, which must not be there yet or be
// empty.
func (l *Loss) Leave(from, to string) error {
	l.actual, l.moved = map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(from, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		id, err := fileID(path)
		l.actual[id] = path
		return err
	})
	if err != nil {
		return err
	}
	id, err := fileID(from)
	if err != nil {
		return err
	}
	return l.folder(id, "", to)
}

// folder makes one folder, rel from the root.
func (l *Loss) folder(id, rel, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	now := map[string]entry{}
	var err error
	if path, there := l.actual[id]; there {
		if now, err = namesIn(path); err != nil {
			return err
		}
	}
	durable, err := l.names(id)
	if err != nil {
		return err
	}
	for _, name := range union(now, durable) {
		path := filepath.Join(rel, name)
		e, there := l.left(path, name, now, durable)
		switch {
		case !there:
		case e.Folder:
			err = l.folder(e.ID, path, filepath.Join(to, name))
		default:
			err = l.file(path, e.ID, filepath.Join(to, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// left is what a name stands for after the loss.
func (l *Loss) left(path, name string, now, durable map[string]entry) (entry, bool) {
	other, otherwise := now[name]
	e, there := durable[name]
	switch {
	case l.Durable != nil && l.Durable(path, other.Folder || e.Folder):
		return other, otherwise
	case l.Random == nil || other == e:
		return e, there
	}
	// A rename is made whole or not at all, so that both names go by the file that was renamed.
	id := other.ID
	if !otherwise {
		id = e.ID
	}
	made, asked := l.moved[id]
	if !asked {
		made = l.Random.IntN(2) == 0
		l.moved[id] = made
	}
	if made {
		return other, otherwise
	}
	return e, there
}

// union are the names of both, sorted, so that a seed repeats.
func union(a, b map[string]entry) []string {
	var names []string
	for _, m := range []map[string]entry{a, b} {
		for name := range m {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// file makes a file of what is left in it.
func (l *Loss) file(path, id, to string) error {
	kept := filepath.Join(l.Dir, id)
	actual, there := l.actual[id]
	if l.Durable != nil && l.Durable(path, false) {
		return copyData(actual, to)
	}
	if l.Random == nil || !there {
		err := copyData(kept, to)
		if errors.Is(err, os.ErrNotExist) {
			return os.WriteFile(to, nil, 0o600) // Never synced.
		}
		return err
	}
	durable, err := os.ReadFile(kept)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	now, err := os.ReadFile(actual)
	if err != nil {
		return err
	}
	return writeSparse(to, l.tear(durable, now))
}

// writeSparse leaves holes where content has pages of zeros.
func writeSparse(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(int64(len(content)))
	var zeros [pageSize]byte
	for at := 0; err == nil && at < len(content); at += pageSize {
		if p := content[at:min(at+pageSize, len(content))]; !bytes.Equal(p, zeros[:len(p)]) {
			_, err = f.WriteAt(p, int64(at))
		}
	}
	return errors.Join(err, f.Close())
}

// tear mixes pages of two contents, and sectors of some pages.
func (l *Loss) tear(durable, now []byte) []byte {
	if l.Random.IntN(2) == 0 {
		now = grown(now, len(durable))
	} else {
		now = grown(now, len(durable))[:len(durable)]
	}
	mixed := grown(bytes.Clone(durable), len(now))[:len(now)]
	for at := 0; at < len(now); at += pageSize {
		end := min(at+pageSize, len(now))
		if bytes.Equal(mixed[at:end], now[at:end]) {
			continue
		}
		switch l.Random.IntN(3) {
		case 0:
			copy(mixed[at:end], now[at:end])
		case 1:
			for s := at; s < end; s += sectorSize {
				if l.Random.IntN(2) == 0 {
					e := min(s+sectorSize, end)
					copy(mixed[s:e], now[s:e])
				}
			}
		}
	}
	return mixed
}

// grown is b with zeros up to n.
func grown(b []byte, n int) []byte {
	if len(b) >= n {
		return b
	}
	return append(slices.Clip(b), make([]byte, n-len(b))...)
}
