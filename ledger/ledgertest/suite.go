package ledgertest

import (
	"testing"

	"keep-proxy/ledger"
)

// Subject is a store under test.
type Subject struct {
	Store ledger.Store
	// Reopen closes the store and opens it anew, as a new process, with what was
	// committed.
	Reopen func() ledger.Store
	// KeepsOrphans says that the store doesn't sweep bodies that no record names. A store that ends with its process
	// needn't.
	KeepsOrphans bool
}

// TestStore checks that what open returns keeps every promise of ledger.Store. Each test calls open once. It must
// return an empty ledger, and close it on clean-up.
func TestStore(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"an update is seen by later commands and views", testUpdateSeen},
		{"a command that fails changes nothing", testFailedCommand},
		{"a record's version rises by one", testVersions},
		{"an invalid state is refused", testInvalidStates},
		{"what is absent is not found", testAbsent},
		{"records are private copies", testPrivateCopies},
		{"a cancelled context changes nothing", testCancelled},
		{"commands of many writers are evaluated one after another", testWriters},
		{"a note is kept without waiting", testNote},
		{"an upstream object is evidence for one mutation", testEvidence},
		{"deliveries are kept per run", testDeliveries},
		{"what is committed outlives the process", testReopen},
		{"blockers follow from records", testBlockers},
		{"the gate answers as soon as the command is done", testStanding},
		{"a run's token finds it", testTokens},
		{"who watches the gate is told of each change that may refuse", testWatch},
		{"runs that aren't over are listed, and no others", testRunning},
		{"records are listed by run and by item, oldest first", testMemberships},
		{"items of a run of many are found until they are let go", testTaken},
		{"a record that is dropped is gone, and its events are not", testDrop},
		{"due records come most overdue first", testDue},
		{"the connectors of unresolved records are known without reading", testConnectorOf},
		{"listings are newest first, by pages", testPages},
		{"each filter selects", testFilters},
		{"runs and items are listed newest first", testRunsAndItems},
		{"what stands in a run's way is what blocks its workflow", testStandstill},
		{"an item is found by its id, and runs by their item", testItemsAndRunsOfOne},
		{"events are numbered without gaps and kept in order", testEvents},
		{"who follows is told of a commit before its command is answered", testFollow},
		{"a record is found by a prefix of its id that fits one only", testByID},
		{"bodies of every size are read back", testBodies},
		{"a body that isn't what it says is refused", testWrongBody},
		{"a dropped body says so", testDroppedBody},
		{"a long body that no record names is swept", testSweep},
		{"what was spooled becomes a body", testSpool},
		{"rule files are kept under their hash", testConnectors},
		{"a closed store is unavailable", testClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

// update runs fn as a command that must succeed.
func update(t *testing.T, s ledger.Store, fn func(ledger.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

// viewOf runs fn on a snapshot and must succeed, and as a command.
func viewOf(t *testing.T, s ledger.Store, fn func(ledger.View) error) {
	t.Helper()
	update(t, s, func(tx ledger.Tx) error { return fn(tx) })
	if err := s.View(t.Context(), fn); err != nil {
		t.Fatalf("View: %v", err)
	}
}

// put stores records in one command.
func put(t *testing.T, s ledger.Store, ms ...*ledger.Mutation) {
	t.Helper()
	update(t, s, func(tx ledger.Tx) error {
		for _, m := range ms {
			if err := tx.PutMutation(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// load reads one record.
func load(t *testing.T, s ledger.Store, k ledger.Key) *ledger.Mutation {
	t.Helper()
	var m *ledger.Mutation
	viewOf(t, s, func(v ledger.View) (err error) {
		m, err = v.Mutation(k)
		return err
	})
	return m
}
