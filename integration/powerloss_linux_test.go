package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	pageSize   = 4096
	sectorSize = 512
)

// powerLoss puts in a ledger folder's place what a loss of power leaves of it.
type powerLoss struct {
	ledger, shadow string
	// random chooses which pages and names that weren't durable are there all the same,
	// and tears pages between sectors. Without it none is.
	random *rand.Rand
	// actual finds files as the process left them.
	actual map[string]string
}

// strike changes the folder. The engine's own files (tables, manifest) count as durable as
// they are: it syncs them by itself, where nobody in the process can watch it.
func (p *powerLoss) strike(tb testing.TB) {
	tb.Helper()
	p.actual = map[string]string{}
	old := p.ledger + ".before"
	if err := os.Rename(p.ledger, old); err != nil {
		tb.Fatal(err)
	}
	var dirs []string
	err := filepath.WalkDir(old, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		name, err := filepath.Rel(old, path)
		dirs = append(dirs, name)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	for _, dir := range dirs {
		names, err := namesIn(filepath.Join(old, dir))
		if err != nil {
			tb.Fatal(err)
		}
		for name, id := range names {
			p.actual[id] = filepath.Join(old, dir, name)
		}
	}
	for _, dir := range dirs {
		if err := errors.Join(os.Mkdir(filepath.Join(p.ledger, dir), 0o700), p.folder(old, dir)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.RemoveAll(old); err != nil {
		tb.Fatal(err)
	}
}

// folder makes the files of one folder.
func (p *powerLoss) folder(old, dir string) error {
	now, err := namesIn(filepath.Join(old, dir))
	if err != nil {
		return err
	}
	durable := map[string]string{}
	text, err := os.ReadFile(namesFile(p.ledger, p.shadow, filepath.Join(p.ledger, dir)))
	if err == nil {
		err = json.Unmarshal(text, &durable)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, name := range union(now, durable) {
		to := filepath.Join(p.ledger, dir, name)
		if byItself(dir, name) {
			if id, there := now[name]; there {
				if err := copyData(p.actual[id], to); err != nil {
					return err
				}
			}
			continue
		}
		id, there := durable[name]
		if other, otherwise := now[name]; p.random != nil && (other != id || there != otherwise) && p.random.IntN(2) == 0 {
			id, there = other, otherwise
		}
		if !there {
			continue
		}
		content, err := p.content(id)
		if err == nil {
			err = os.WriteFile(to, content, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// union are the names of both, sorted, so that a seed repeats.
func union(a, b map[string]string) []string {
	var names []string
	for _, m := range []map[string]string{a, b} {
		for name := range m {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// byItself says that a file isn't one of those that the ledger syncs: the engine's own, and
// what lies in the folder besides the ledger.
func byItself(dir, name string) bool {
	switch dir {
	case "data":
		return filepath.Ext(name) != ".mem"
	case "bodies", "spool", "unlisted":
		return false
	}
	return !strings.HasPrefix(name, "ledger.") && !strings.HasPrefix(name, ".new-") && name != "highwater"
}

// content is what is left in a file.
func (p *powerLoss) content(id string) ([]byte, error) {
	durable, err := os.ReadFile(filepath.Join(p.shadow, id))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	path, there := p.actual[id]
	if p.random == nil || !there {
		return durable, nil
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return p.tear(durable, now), nil
}

// tear mixes pages of two contents, and sectors of some pages.
func (p *powerLoss) tear(durable, now []byte) []byte {
	if p.random.IntN(2) == 0 {
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
		switch p.random.IntN(3) {
		case 0:
			copy(mixed[at:end], now[at:end])
		case 1:
			for s := at; s < end; s += sectorSize {
				if p.random.IntN(2) == 0 {
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
