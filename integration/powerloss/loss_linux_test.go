package powerloss

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// trial is a folder and what is durable of it.
type trial struct {
	t      *testing.T
	from   string
	shadow Shadow
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	return &trial{t, t.TempDir(), Shadow{Dir: t.TempDir()}}
}

func (w *trial) at(name string) string { return filepath.Join(w.from, name) }

func (w *trial) must(errs ...error) {
	w.t.Helper()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *trial) write(name, content string) {
	w.t.Helper()
	w.must(os.WriteFile(w.at(name), []byte(content), 0o600))
}

// sync makes a file durable as its own sync does.
func (w *trial) sync(name string) {
	w.t.Helper()
	w.must(w.shadow.Sync(w.at(name)), w.shadow.Name(w.at(name)))
}

// left are the files after a loss of power, by their paths; a folder ends in a slash.
func (w *trial) left(random *rand.Rand) map[string]string {
	w.t.Helper()
	to := filepath.Join(w.t.TempDir(), "left")
	w.must((&Loss{Shadow: w.shadow, Random: random}).Leave(w.from, to))
	found := map[string]string{}
	w.must(filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
		if err != nil || path == to {
			return err
		}
		name, err := filepath.Rel(to, path)
		if err != nil || e.IsDir() {
			found[name+"/"] = ""
			return err
		}
		content, err := os.ReadFile(path)
		found[name] = string(content)
		return err
	}))
	return found
}

func (w *trial) want(want map[string]string) {
	w.t.Helper()
	if got := w.left(nil); !maps.Equal(got, want) {
		w.t.Errorf("left are %v, want %v", got, want)
	}
}

func TestWhatWasNotSyncedIsGone(t *testing.T) {
	t.Parallel()
	w := newTrial(t)
	w.write("new", "1")
	w.want(map[string]string{})
	w.write("content", "1")
	w.sync("content")
	w.write("content", "2")
	w.write("c.new", "1")
	w.sync("c.new")
	w.must(os.Rename(w.at("c.new"), w.at("c")), os.Mkdir(w.at("folder"), 0o700))
	w.write("folder/file", "1")
	w.sync("folder/file")
	w.write("gone", "1")
	w.sync("gone")
	w.must(os.Remove(w.at("gone")))
	w.want(map[string]string{"content": "1", "c.new": "1", "gone": "1"})
	w.must(w.shadow.SyncDir(w.from))
	w.want(map[string]string{"content": "1", "c": "1", "folder/": "", "folder/file": "1", "new": ""})
	// Another folder of that name has nothing of the first.
	w.must(os.RemoveAll(w.at("folder")), os.Mkdir(w.at("folder"), 0o700), w.shadow.SyncDir(w.from))
	w.want(map[string]string{"content": "1", "c": "1", "folder/": "", "new": ""})
}

func TestSomeOfWhatWasNotSyncedIsThereWhenTorn(t *testing.T) {
	t.Parallel()
	w := newTrial(t)
	before, after := strings.Repeat("a", 3*pageSize), strings.Repeat("b", 3*pageSize)
	w.write("file", before)
	w.write("new", "1")
	w.sync("file")
	w.must(w.shadow.Sync(w.at("new")), w.shadow.SyncDir(w.from))
	w.write("file", after)
	w.must(os.Rename(w.at("new"), w.at("renamed")))
	contents, names := map[string]bool{}, map[string]bool{}
	for seed := range uint64(64) {
		left := w.left(rand.New(rand.NewPCG(seed, 1)))
		for at := 0; at < len(before); at += sectorSize {
			if s := left["file"][at : at+sectorSize]; s != before[:sectorSize] && s != after[:sectorSize] {
				t.Fatalf("seed %d: a sector is torn in itself: %q", seed, s)
			}
		}
		_, old := left["new"]
		_, made := left["renamed"]
		if old == made {
			t.Errorf("seed %d: both names are there, or none: %v", seed, slices.Collect(maps.Keys(left)))
		}
		contents[left["file"]], names["new"], names["renamed"] = true, names["new"] || old, names["renamed"] || made
	}
	if len(contents) < 8 || !names["new"] || !names["renamed"] {
		t.Errorf("%d contents, names %v", len(contents), names)
	}
}

func TestHolesStayAndWhatIsShorterIs(t *testing.T) {
	t.Parallel()
	w := newTrial(t)
	w.write("file", strings.Repeat("a", 2*pageSize))
	w.sync("file")
	w.must(os.Truncate(w.at("file"), 1), os.Truncate(w.at("file"), 1<<20))
	w.sync("file")
	if got := w.left(nil)["file"]; got != "a"+string(bytes.Repeat([]byte{0}, 1<<20-1)) {
		t.Errorf("%d bytes are left, which begin with %q", len(got), got[:min(len(got), 8)])
	}
}

func TestStepsAreCountedOnceBegun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &Steps{Trace: filepath.Join(dir, "trace"), Begun: filepath.Join(dir, "begun"), Kill: "a #2"}
	var kills []bool
	for _, name := range []string{"a", "a", "", "a", "b", "a", "a"} {
		if name == "" {
			if err := os.WriteFile(s.Begun, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		kill, err := s.Pass(name)
		if err != nil {
			t.Fatal(err)
		}
		kills = append(kills, kill)
	}
	if want := []bool{false, false, false, false, true, false}; !slices.Equal(kills, want) {
		t.Errorf("ends at %v, want %v", kills, want)
	}
	if text, err := os.ReadFile(s.Trace); err != nil || string(text) != "a #1\nb #1\na #2\na #3\n" {
		t.Errorf("%q, %v", text, err)
	}
}
