package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// fill stores records and returns their keys. Filler makes memtables rotate, so that
// the folder holds tables as well as logs.
func fill(t *testing.T, s *Store, from, n, filler int) []ledger.Key {
	t.Helper()
	var keys []ledger.Key
	for i := from; i < from+n; i++ {
		key, err := tryFill(s, i, filler)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

// tryFill stores one record.
func tryFill(s *Store, i, filler int) (ledger.Key, error) {
	m := ledgertest.SampleMutation(fmt.Sprint("record ", i), ledger.Applied, i)
	m.Target = strings.Repeat("x", filler)
	return m.Key, s.Update(context.Background(), func(tx ledger.Tx) error {
		tx.Append(ledger.Event{At: time.Now(), What: "claim", Mutation: m.ID})
		return tx.PutMutation(m)
	})
}

// copyFolder copies src to a new folder, as a crash at this moment leaves it.
func copyFolder(t *testing.T, src string) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "copy")
	copyTo(t, dst, src)
	return dst
}

// copyTo copies src to a new folder. Logs are long and nearly empty: what is zero stays a hole.
func copyTo(t *testing.T, dst, src string) {
	t.Helper()
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		to := filepath.Join(dst, strings.TrimPrefix(path, src))
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(to, 0o700))
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(content[:used(content)])
		return errors.Join(err, f.Truncate(int64(len(content))), f.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// crash is what crashed copies. TestMain removes it.
var crash struct {
	once sync.Once
	dir  string
	keys []ledger.Key
}

// crashed returns a folder with tables and logs, as a killed process leaves it, and
// what was acknowledged. Some of what the logs hold isn't in the journal any more.
func crashed(t *testing.T) (string, []ledger.Key) {
	t.Helper()
	crash.once.Do(func() {
		at, err := os.MkdirTemp("", "crashed") //nolint:usetesting // It outlives the first test that wants it.
		if err != nil {
			t.Fatal(err)
		}
		crash.dir = at
		var dir string
		dir, crash.keys = crashedAnew(t)
		copyTo(t, filepath.Join(at, "ledger"), dir)
	})
	return copyFolder(t, filepath.Join(crash.dir, "ledger")), crash.keys
}

// crashedAnew is crashed with a ledger of its own.
func crashedAnew(t *testing.T) (string, []ledger.Key) {
	t.Helper()
	c := testConfig(t.TempDir())
	c.ring = 4 << 20
	s := mustOpen(t, c)
	// Badger's newest log gets more than the ring holds.
	keys := fill(t, s, 0, 70, 150<<10)
	keys = append(keys, fill(t, s, 70, 30, 10)...)
	emptied(t, s)
	keys = append(keys, fill(t, s, 100, 5, 10)...)
	flushed(t, c)
	dir := copyFolder(t, c.Dir)
	return dir, keys
}

// flushed waits until Badger has made tables of all logs but the newest, so that
// its files stand still.
func flushed(t *testing.T, c Config) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(5 * time.Minute)
	for {
		logs, err := filepath.Glob(filepath.Join(c.dataDir(), "*"+walSuffix))
		if err != nil {
			t.Fatal(err)
		}
		if len(logs) == 1 {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("still there: %v", logs)
		}
	}
}

// refusesOrKeeps opens the folder: it must refuse with an error that says how to go
// on, or hold every record.
func refusesOrKeeps(t *testing.T, c Config, keys []ledger.Key) (refusal error) {
	t.Helper()
	s, err := Open(context.Background(), c)
	if err != nil {
		known := []error{ledger.ErrDamaged, ledger.ErrShortened, ledger.ErrMissing, ledger.ErrForeign, ledger.ErrFormat}
		for _, k := range known {
			if errors.Is(err, k) {
				return err
			}
		}
		t.Errorf("refused, but not by name: %v", err)
		return err
	}
	defer s.Close()
	lost := 0
	err = s.View(context.Background(), func(v ledger.View) error {
		for _, k := range keys {
			if _, err := v.Mutation(k); errors.Is(err, ledger.ErrNotFound) {
				lost++
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !isDamage(err) {
		t.Errorf("reading: %v", err)
	}
	if lost > 0 {
		t.Errorf("opened, and %d of %d acknowledged records are gone without a word", lost, len(keys))
	}
	return nil
}

// files lists the regular files below dir that hold something.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// used is the length of a file up to its last byte that isn't zero: logs are
// allocated in advance.
func used(b []byte) int {
	n, zero := len(b), make([]byte, 4<<10)
	for n >= len(zero) && bytes.Equal(b[n-len(zero):n], zero) {
		n -= len(zero)
	}
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return n
}

func TestDamageNeverLosesSilently(t *testing.T) {
	t.Parallel()
	origin, keys := crashed(t)
	random := rand.New(rand.NewPCG(1, 2))
	refused, nth := map[string]int{}, 0
	for _, path := range files(t, origin) {
		name, err := filepath.Rel(origin, path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) == "ledger.lock" || filepath.Base(name) == "LOCK" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		end := used(content)
		flip := func() []byte {
			b := bytes.Clone(content)
			b[random.IntN(max(end, 1))] ^= 1 << random.IntN(8)
			return b
		}
		nth++
		for n, kind := range []struct {
			name   string
			change func() []byte
		}{
			{"deleted", nil},
			{"a bit flipped", flip},
			{"emptied", func() []byte { return nil }},
			{"cut in half", func() []byte { return content[:end/2] }},
			{"another bit flipped", flip},
			{"last byte gone", func() []byte { return content[:max(end-1, 0)] }},
		} {
			// A third of the damages of each file, or all in make proof.
			ext := filepath.Ext(name)
			if (nth+n)%3 != 0 && !proving() {
				continue
			}
			dir := copyFolder(t, origin)
			target := filepath.Join(dir, name)
			if kind.change == nil {
				err = os.Remove(target)
			} else if len(content) > 0 {
				err = os.WriteFile(target, kind.change(), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Run(name+" "+kind.name, func(t *testing.T) {
				defer os.RemoveAll(dir)
				if refusesOrKeeps(t, testConfig(dir), keys) != nil {
					refused[ext]++
				}
			})
		}
	}
	for _, ext := range []string{".sst", ".mem", ".id", ""} {
		if refused[ext] == 0 {
			t.Errorf("no damage of a %q file was refused: the test damaged nothing", ext)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	water := filepath.Join(t.TempDir(), "elsewhere")
	for _, c := range []struct {
		name string
		// change is done to a crashed folder and its configuration.
		change func(t *testing.T, c *Config)
		want   error
		text   string
	}{
		{"a swapped folder", func(t *testing.T, c *Config) {
			t.Helper()
			other := testConfig(t.TempDir())
			mustInit(t, other)
			swap(t, filepath.Join(other.Dir, "data"), filepath.Join(c.Dir, "data"))
		}, ledger.ErrDamaged, "accept-loss"},
		{"another ledger than configured", func(t *testing.T, c *Config) {
			t.Helper()
			c.ID = "other"
		}, ledger.ErrForeign, "ledger.id"},
		{"no data", func(t *testing.T, c *Config) {
			t.Helper()
			remove(t, c.Dir, "data")
		}, ledger.ErrMissing, "accept-loss"},
		{"an empty folder, but an id is configured", func(t *testing.T, c *Config) {
			t.Helper()
			c.Dir, c.ID = t.TempDir(), "mine"
		}, ledger.ErrMissing, "mount its volume"},
		{"an empty folder, but a high-water file elsewhere", func(t *testing.T, c *Config) {
			t.Helper()
			first := testConfig(t.TempDir())
			first.HighWaterFile = water
			if err := mustOpenOnly(t, first).Close(); err != nil {
				t.Fatal(err)
			}
			c.Dir, c.HighWaterFile = t.TempDir(), water
		}, ledger.ErrMissing, "accept-loss"},
		{"no ledger.id", func(t *testing.T, c *Config) {
			t.Helper()
			remove(t, c.Dir, "ledger.id")
		}, ledger.ErrDamaged, "ledger.id"},
		{"no log", func(t *testing.T, c *Config) {
			t.Helper()
			remove(t, c.Dir, "log")
		}, ledger.ErrDamaged, "no log"},
		{"a witness that isn't there", func(t *testing.T, c *Config) {
			t.Helper()
			c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
			s := mustOpenOnly(t, *c)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			remove(t, filepath.Dir(c.HighWaterFile), "highwater")
		}, ledger.ErrDamaged, "mount its volume"},
		{"a newer format", func(t *testing.T, c *Config) {
			t.Helper()
			i, err := readIdentity(c.identityPath())
			if err != nil {
				t.Fatal(err)
			}
			i.Format, i.Version = format+1, "9.9.9"
			if err := os.WriteFile(c.identityPath(), i.text(), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ledger.ErrFormat, "9.9.9"},
		{"an older format", func(t *testing.T, c *Config) {
			t.Helper()
			i, err := readIdentity(c.identityPath())
			if err != nil {
				t.Fatal(err)
			}
			i.Format--
			if err := os.WriteFile(c.identityPath(), i.text(), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ledger.ErrFormat, "begin a new ledger"},
		{"an accepted loss that was cut short", func(t *testing.T, c *Config) {
			t.Helper()
			place(t, c.acceptingPath(), nil)
		}, ledger.ErrDamaged, "accept-loss"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := testConfig(t.TempDir())
			s := mustOpenOnly(t, config)
			fill(t, s, 0, 3, 10)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(t, &config)
			}
			s, err := Open(context.Background(), config)
			if err == nil {
				s.Close()
				t.Fatal("it opened")
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v\nwant %v, naming %q", err, c.want, c.text)
			}
			// What doesn't start isn't called sound either.
			if _, err := Verify(t.Context(), config, nil); !errors.Is(err, c.want) {
				t.Errorf("verify: %v\nwant %v", err, c.want)
			}
		})
	}
}

func TestOlderCopyIsFoundByAHighWaterFileElsewhere(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "state", "highwater")
	s := mustOpenOnly(t, c)
	fill(t, s, 0, 3, 10)
	emptied(t, s)
	older := copyFolder(t, c.Dir)
	fill(t, s, 3, 1, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.Dir = older
	if _, err := Open(context.Background(), c); !errors.Is(err, ledger.ErrShortened) {
		t.Errorf("got %v, want ErrShortened", err)
	}
}

// mustOpenOnly opens without verifying on clean-up.
func mustOpenOnly(t *testing.T, c Config) *Store {
	t.Helper()
	s, err := Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustInit(t *testing.T, c Config) {
	t.Helper()
	if _, err := Init(c); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, elem ...string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(elem...)); err != nil {
		t.Fatal(err)
	}
}

func swap(t *testing.T, from, to string) {
	t.Helper()
	remove(t, to)
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func place(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
