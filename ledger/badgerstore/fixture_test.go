package badgerstore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

var updateFixture = flag.Bool("update", false, "write the ledger folder of the present format anew")

// fixtures are packed ledger folders, one for each format from 4 on. The last one is of the present format.
func fixtures(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/ledger-v*.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	now := fmt.Sprintf("testdata/ledger-v%d.tar.gz", format)
	if !slices.Contains(all, now) {
		t.Errorf("there is no %s: make fixture", now)
	}
	return all
}

// fixtureBody is the stored answer of the applied record.
var fixtureBody = []byte(`{"id":"re_1","status":"succeeded"}`)

// makeFixture stores the records that the test expects, and packs the folder.
func makeFixture(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	c := testConfig(dir)
	c.Now = func() ledger.Stamp {
		return ledger.Stamp{Wall: ledgertest.Epoch, Mono: time.Hour, Boot: time.Hour, BootID: "boot"}
	}
	c.ID, c.ring = "fixture", 256<<10
	if _, err := Init(c); err != nil {
		t.Fatal(err)
	}
	s := mustOpenOnly(t, c)
	applied := ledgertest.SampleMutation("applied", ledger.Applied, 0)
	applied.ResultState = ledger.ResultKnown
	applied.Result = &ledger.Result{Status: 200, Body: ledgertest.SampleBody(fixtureBody), Source: "answer"}
	unknown := ledgertest.SampleMutation("unknown", ledger.Indeterminate, 1)
	unknown.Item = "order-2"
	unknown.Escalation = &ledger.Escalation{ID: unknown.ID + "-1", Kind: ledger.EscalationIndeterminate, Why: "no answer", OpenedAt: ledgertest.Epoch}
	err := s.Update(t.Context(), func(tx ledger.Tx) error {
		for _, m := range []*ledger.Mutation{applied, unknown} {
			tx.Append(ledger.Event{At: ledgertest.Epoch, Actor: ledger.ActorProxy, What: "claim", Mutation: m.ID, To: ledger.InFlight})
		}
		_, err := tx.PutBody(fixtureBody)
		return errors.Join(err, tx.PutMutation(applied), tx.PutMutation(unknown),
			tx.PutItem(ledgertest.SampleItem("order-1", 0)), tx.PutItem(ledgertest.SampleItem("order-2", 1)),
			tx.PutRun(ledgertest.SampleRun("run-1", 0)), tx.PutConnector("hash", []byte("connector: stripe\n")))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	pack(t, dir, fmt.Sprintf("testdata/ledger-v%d.tar.gz", format))
}

func TestLedgerOfEachFormat(t *testing.T) {
	if *updateFixture {
		makeFixture(t)
	}
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) { replayAndResolve(t, path) })
	}
}

// replayAndResolve opens a fixture, reads the stored answer, and settles what is
// unknown.
func replayAndResolve(t *testing.T, path string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ledger")
	unpack(t, path, dir)
	c := testConfig(dir)
	c.ID = "fixture"
	s := mustOpen(t, c)
	m, err := s.MutationByID(t.Context(), ledgertest.SampleMutation("applied", ledger.Applied, 0).ID)
	if err != nil {
		t.Fatal(err)
	}
	body, err := s.Body(t.Context(), m.Result.Body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil || !bytes.Equal(got, fixtureBody) {
		t.Errorf("the stored answer: %q, %v", got, err)
	}
	if blockers, _ := gateOf(s).BlockersOf("refunds"); len(blockers) != 1 || blockers[0].Item != "order-2" {
		t.Fatalf("blockers %+v", blockers)
	}
	l := ledger.New(s, ledger.Config{Now: c.Now, NewID: c.NewID})
	unknown := ledgertest.SampleMutation("unknown", ledger.Indeterminate, 1)
	resolved, err := l.Resolve(context.Background(), ledger.Resolve{
		Key: unknown.Key, Action: ledger.OnHappened, Actor: "ada", Reason: "seen in the dashboard", Version: 1, NoResult: true,
	})
	if err != nil || resolved.Mutation.State != ledger.Applied {
		t.Fatalf("resolve: %+v, %v", resolved.Mutation, err)
	}
	if blockers, _ := l.BlockersOf("refunds"); len(blockers) != 0 {
		t.Errorf("still blocked by %+v", blockers)
	}
	holdsBoth(t, s, resolved.Mutation)
}

// holdsBoth looks for what lay in the fixture and what came since under one name.
func holdsBoth(t *testing.T, s *Store, unknown *ledger.Mutation) {
	t.Helper()
	events, err := s.Events(t.Context(), unknown.ID, 0, 0)
	if err != nil || len(events) != 2 || events[0].What != "claim" || events[1].What != string(ledger.OnHappened) {
		t.Errorf("events %+v, %v", events, err)
	}
	for limit := 1; limit <= 4; limit++ {
		for after := range uint64(3) {
			events, err := s.Events(t.Context(), "", after, limit)
			if err != nil || len(events) != min(limit, 3-int(after)) {
				t.Fatalf("%d events after %d: %+v, %v", limit, after, events, err)
			}
			for i, e := range events {
				if e.Seq != after+uint64(i)+1 {
					t.Errorf("event %d after %d is number %d", i, after, e.Seq)
				}
			}
		}
	}
	applied := ledgertest.SampleMutation("applied", ledger.Applied, 0)
	for want, f := range map[string]ledger.Filter{
		unknown.ID: {Workflow: "refunds", Item: "order-2"}, applied.ID: {Run: "run-1", Item: "order-1"},
	} {
		p, err := s.Mutations(t.Context(), f)
		if err != nil || len(p.Items) != 1 || p.Items[0].ID != want {
			t.Errorf("listed by %+v: %+v, %v", f, p.Items, err)
		}
	}
	err = s.View(t.Context(), func(v ledger.View) error {
		keys, err := v.ItemMutations("refunds", "order-2")
		if len(keys) != 1 || keys[0] != unknown.Key {
			t.Errorf("the item's mutations: %v", keys)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// pack writes the folder as a compressed archive.
func pack(t *testing.T, dir, path string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, path, dir string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h, err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		content, err := io.ReadAll(r)
		target := filepath.Join(dir, h.Name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(target), 0o700), os.WriteFile(target, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// seen reads a record by a command, as a try does.
func seen(t *testing.T, s *Store, k ledger.Key) *ledger.Mutation {
	t.Helper()
	var m *ledger.Mutation
	err := s.Update(t.Context(), func(v ledger.Tx) (err error) {
		m, err = v.Mutation(k)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// putting is a command that puts these records.
func putting(all ...*ledger.Mutation) func(*tx) error {
	return func(tx *tx) error {
		for _, m := range all {
			if err := tx.PutMutation(m); err != nil {
				return err
			}
		}
		return nil
	}
}

// gateOf is the gate over s, from now on.
func gateOf(s *Store) *ledger.Ledger {
	return ledger.New(s, ledger.Config{Now: s.config.Now, NewID: s.config.NewID})
}

// MutationByID is that of a ledger over s.
func (s *Store) MutationByID(ctx context.Context, id string) (*ledger.Mutation, error) {
	return (&ledger.Ledger{Store: s}).MutationByID(ctx, id)
}
