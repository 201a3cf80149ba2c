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
	if n, ok := b.start(one, "a"); !ok || n != 1 {
		t.Fatalf("first start: %d, %v", n, ok)
	}
	if _, ok := b.start(two, "a"); ok {
		t.Error("a connector got more places than it may have")
	}
	if n, ok := b.start(two, "b"); !ok || n != 2 {
		t.Errorf("second start: %d, %v", n, ok)
	}
	if _, ok := b.start(three, "c"); ok || b.open(three, 0) {
		t.Error("more tries than there are places")
	}
	if b.claim(one) {
		t.Error("a record was taken twice")
	}
	if n := b.done("a"); n != 1 || b.open(one, 0) {
		t.Errorf("%d running; the record is open although it was not given back", n)
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
