package badgerstore

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// hundreds of records with a long text each are more than one transaction takes.
const hundreds = 500

var longText = strings.Repeat("x", 1000)

// storeHundreds stores many records of one workflow, a hundred a command.
func storeHundreds(t *testing.T, s *Store, put func(ledger.Tx, int) error) {
	t.Helper()
	for from := 0; from < hundreds; from += 100 {
		err := s.Update(t.Context(), func(tx ledger.Tx) error {
			for i := from; i < from+100; i++ {
				if err := put(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func manyLedger(t *testing.T) (*Store, *ledger.Ledger) {
	t.Helper()
	c := testConfig(t.TempDir())
	s := mustOpen(t, c)
	return s, ledger.New(s, ledger.Config{Now: c.Now, NewID: c.NewID})
}

// mutationOf is record i of an item, in the state.
func mutationOf(i int, item, run string, state ledger.State) *ledger.Mutation {
	at := time.Now()
	m := &ledger.Mutation{
		Intent: ledger.Intent{
			Key: ledger.Key{byte(i >> 8), byte(i), 1}, Connector: "c", Operation: "o",
			Target:     "Pay " + longText,
			Scope:      ledger.Scope{Workflow: "w", Item: item, Attempt: 1, Run: run},
			Generation: 1,
		},
		Version:   1,
		CreatedAt: at, UpdatedAt: at,
		Outcome: ledger.Outcome{State: state},
		Payload: ledger.Payload{PayloadDigest: "p"},
	}
	m.ID = m.Key.ID()
	return m
}

func itemOf(name, run string, shared bool) *ledger.Item {
	at := time.Now()
	return &ledger.Item{
		ID: ledger.ItemID("w", name), Version: 1, Workflow: "w", Item: name, State: ledger.ItemOpen, Attempt: 1,
		ActiveRun: run, Shared: shared, OpenedAt: at, UpdatedAt: at,
	}
}

func TestFinishingARunOfHundredsOfItems(t *testing.T) {
	t.Parallel()
	s, l := manyLedger(t)
	r, err := l.OpenRun(t.Context(), ledger.OpenRun{Workflow: "w", Items: ledger.ItemsMany})
	if err != nil {
		t.Fatal(err)
	}
	storeHundreds(t, s, func(tx ledger.Tx, i int) error {
		name := fmt.Sprint("item ", i, longText)
		if err := tx.PutMutation(mutationOf(i, name, r.ID, ledger.Applied)); err != nil {
			return err
		}
		return tx.PutItem(itemOf(name, r.ID, true))
	})
	r, err = l.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
	if err != nil || r.State != ledger.RunFinished {
		t.Fatalf("run %+v, %v", r, err)
	}
	err = l.View(t.Context(), func(v ledger.View) error {
		for i := range hundreds {
			item, err := v.Item("w", fmt.Sprint("item ", i, longText))
			if err != nil {
				return err
			}
			if item.State != ledger.ItemDone || item.ActiveRun != "" {
				return fmt.Errorf("item %+v", item)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSkippingAnItemOfHundredsOfMutations(t *testing.T) {
	t.Parallel()
	s, l := manyLedger(t)
	storeHundreds(t, s, func(tx ledger.Tx, i int) error {
		if i == 0 {
			if err := tx.PutItem(itemOf("i", "", false)); err != nil {
				return err
			}
		}
		return tx.PutMutation(mutationOf(i, "i", "", ledger.Indeterminate))
	})
	item, err := l.DecideItem(t.Context(), ledger.DecideItem{
		Workflow: "w", Item: "i", Action: ledger.ItemSkip, Actor: "ada", Reason: "never mind", WithMutations: true,
	})
	if err != nil || item.State != ledger.ItemSkipped {
		t.Fatalf("item %+v, %v", item, err)
	}
	blockers, err := l.BlockersOf("w")
	if err != nil || len(blockers) != 0 {
		t.Errorf("%d mutations still stop the workflow, %v", len(blockers), err)
	}
}

// longOf is record i in flight, with a head as long as requests may have.
func longOf(i int) *ledger.Mutation {
	m := ledgertest.SampleMutation(fmt.Sprint("long ", i), ledger.InFlight, i)
	m.Request.URL += "?q=" + strings.Repeat("x", 40<<10)
	return m
}

// What a lost process left in flight may be too much for one transaction of the store, and none
// of it may keep the next process from starting.
func TestRecoveryOfManyLongRecords(t *testing.T) {
	t.Parallel()
	s, l := manyLedger(t)
	const n = 100
	for i := range n {
		putEdge(t, s, longOf(i))
	}
	counts, err := l.Recover(t.Context(), func(*ledger.Mutation) time.Time { return time.Now() })
	if err != nil || counts != (ledger.RecoverCounts{NeedsReconcile: n}) {
		t.Errorf("%+v, %v", counts, err)
	}
}

func TestAcceptingALossOfManyLongRecords(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := openEdge(t, c)
	const n = 100
	for i := range n {
		putEdge(t, s, longOf(i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.logPath()); err != nil {
		t.Fatal(err)
	}
	loss, err := AcceptLoss(t.Context(), c, "the volume broke", "ada")
	if err != nil || loss.Mutations != n {
		t.Errorf("%+v, %v", loss, err)
	}
}
