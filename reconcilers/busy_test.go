package reconcilers

import (
	"testing"
	"time"

	"keep-proxy/ledger"
)

func TestBusyPlaces(t *testing.T) {
	t.Parallel()
	b := newBusy(2, 1)
	one, two, three := ledger.Key{1}, ledger.Key{2}, ledger.Key{3}
	if !b.start(one, "a") || b.running != 1 {
		t.Fatalf("after the first start %d are running", b.running)
	}
	if b.start(two, "a") {
		t.Error("a connector got more places than it may have")
	}
	if !b.start(two, "b") || b.running != 2 {
		t.Errorf("after the second start %d are running", b.running)
	}
	if b.start(three, "c") || b.open(three, 0) {
		t.Error("more tries than there are places")
	}
	if b.claim(one) {
		t.Error("a record was taken twice")
	}
	if b.done("a"); b.running != 1 || b.open(one, 0) {
		t.Errorf("%d running; the record is open although it was not given back", b.running)
	}
	b.free(one)
	if !b.open(one, 0) || !b.claim(one) {
		t.Error("a record that was given back is not open")
	}
}

func TestBusyPostponesForAWhile(t *testing.T) {
	t.Parallel()
	b := newBusy(1, 1)
	k := ledger.Key{1}
	b.postpone(k, time.Minute, time.Second)
	if b.open(k, time.Minute) {
		t.Error("open although it was put off")
	}
	if !b.open(k, time.Minute+time.Second) {
		t.Error("not open when the time was over")
	}
	b.postpone(ledger.Key{2}, time.Hour, time.Second)
	if len(b.deferred) != 1 {
		t.Errorf("%d records are held back, want the last only", len(b.deferred))
	}
}
