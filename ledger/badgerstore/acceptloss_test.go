package badgerstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// active stores one record in flight, one run and items in three states.
func active(t *testing.T, s *Store) *ledger.Mutation {
	t.Helper()
	m := ledgertest.SampleMutation("active", ledger.InFlight, 0)
	done, failed := ledgertest.SampleItem("done", 1), ledgertest.SampleItem("failed", 2)
	done.State, failed.State = ledger.ItemDone, ledger.ItemFailed
	failed.Reason, failed.Cause = "the upstream refuses the request as it is", m.ID
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		tx.Append(ledger.Event{At: time.Now(), What: "claim", Mutation: m.ID})
		return errors.Join(tx.PutMutation(m), tx.PutRun(ledgertest.SampleRun("run-1", 0)),
			tx.PutItem(ledgertest.SampleItem("order-1", 0)), tx.PutItem(done), tx.PutItem(failed))
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// shortened returns the configuration of a ledger that lost its last commands.
func shortened(t *testing.T) (Config, *ledger.Mutation) {
	t.Helper()
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	s := mustOpenOnly(t, c)
	m := active(t, s)
	emptied(t, s)
	older := copyFolder(t, c.Dir)
	fill(t, s, 0, 3, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.Dir = older
	return c, m
}

func TestAcceptLossOfAShortenedLedger(t *testing.T) {
	t.Parallel()
	c, m := shortened(t)
	loss, err := AcceptLoss(t.Context(), c, "restored from a copy", "ada")
	if err != nil {
		t.Fatal(err)
	}
	if loss.New || loss.Mutations != 1 || loss.Runs != 1 || loss.Items != 2 || !strings.Contains(loss.Cause, "shorter") {
		t.Errorf("loss %+v", loss)
	}
	s := mustOpen(t, c)
	err = s.View(t.Context(), func(v ledger.View) error {
		got, err1 := v.Mutation(m.Key)
		run, err2 := v.Run("run-1")
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if !got.Unresolved() || got.State != ledger.InFlight || !got.Dispatches[0].Lost {
			t.Errorf("the record in flight: %s, lost %v", got.State, got.Dispatches[0].Lost)
		}
		if run.State != ledger.RunPausedAttention {
			t.Errorf("the run is %s", run.State)
		}
		for item, want := range map[string]ledger.ItemState{
			"order-1": ledger.ItemNeedsAttention, "failed": ledger.ItemNeedsAttention, "done": ledger.ItemDone,
		} {
			i, err := v.Item("refunds", item)
			if err != nil || i.State != want {
				t.Errorf("item %s: %+v, %v; want %s", item, i, err, want)
			}
		}
		return nil
	})
	events, err2 := s.Events(t.Context(), "", 0, 10)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	last := events[len(events)-1]
	if last.What != WhatAcceptLoss || last.Actor != "person:ada" || last.Why != "restored from a copy" {
		t.Errorf("the last event is %+v", last)
	}
}

func TestAcceptLossOfOtherLedgers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, c *Config)
		want   error
		isNew  bool
	}{
		{"whole", nil, errNoLoss, false},
		{"never begun", func(t *testing.T, c *Config) {
			t.Helper()
			c.Dir = t.TempDir()
		}, errNoLoss, false},
		{"without data", func(t *testing.T, c *Config) {
			t.Helper()
			remove(t, c.Dir, "data")
		}, nil, true},
		{"without ledger.id", func(t *testing.T, c *Config) {
			t.Helper()
			remove(t, c.Dir, "ledger.id")
		}, nil, false},
		{"without a log", func(t *testing.T, c *Config) {
			t.Helper()
			remove(t, c.Dir, "log")
		}, nil, false},
		{"cut short while accepting", func(t *testing.T, c *Config) {
			t.Helper()
			if err := os.WriteFile(c.acceptingPath(), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, nil, false},
		{"another's", func(t *testing.T, c *Config) {
			t.Helper()
			c.ID = "other"
		}, ledger.ErrForeign, false},
		{"with a manifest that Badger can't read", func(t *testing.T, c *Config) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(c.dataDir(), "MANIFEST"), []byte("?"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ledger.ErrDamaged, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := testConfig(t.TempDir())
			s := mustOpenOnly(t, config)
			active(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(t, &config)
			}
			loss, err := AcceptLoss(t.Context(), config, "because", "ada")
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if loss.New != c.isNew {
				t.Errorf("new ledger: %v", loss.New)
			}
			if c.want == nil {
				mustOpen(t, config)
			}
		})
	}
	if _, err := AcceptLoss(t.Context(), testConfig(t.TempDir()), " ", "ada"); err == nil {
		t.Error("accepted without a reason")
	}
}

func TestBackupIsAWholeLedger(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	m := active(t, s)
	keys := fill(t, s, 0, 20, 100<<10)
	dir := filepath.Join(t.TempDir(), "backup")
	if err := s.Backup(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), dir, nil); err == nil {
		t.Error("a folder that holds something was taken")
	}
	fill(t, s, 20, 1, 10)
	c := testConfig(dir)
	r, err := Verify(t.Context(), c, nil)
	if err != nil || r.Mutations != 21 || r.Events != 21 || r.ID != s.ID() {
		t.Fatalf("%+v, %v", r, err)
	}
	c.Restored = true
	refusal := refusesOrKeeps(t, c, append(keys, m.Key))
	if refusal != nil {
		t.Error(refusal)
	}
}

// What can't be read now may hold what was acknowledged: it isn't replaced, and nobody is told to give all up.
func TestAnUnreadableLogIsNoLossToAccept(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 3, 10)
	// The last ones are in the log alone.
	crashed := c
	crashed.Dir = copyFolder(t, c.Dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	remove(t, crashed.Dir, "ledger.id")
	away := crashed.logPath() + ".away"
	if err := errors.Join(os.Rename(crashed.logPath(), away), os.Symlink(crashed.logPath(), crashed.logPath())); err != nil {
		t.Fatal(err)
	}
	_, err := AcceptLoss(t.Context(), crashed, "a drill", "ada")
	if !errors.Is(err, unix.ELOOP) || strings.Contains(err.Error(), "move the folder") {
		t.Fatalf("with a log that can't be read: %v", err)
	}
	// Its id was made anew by then.
	swap(t, away, crashed.logPath())
	if err := refusesOrKeeps(t, crashed, keys); err != nil {
		t.Error(err)
	}
}
