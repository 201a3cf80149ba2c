package reconcilers

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"keep-proxy/internal/clock"
)

func TestAccountsAreRememberedForTheirTimeAndInBounds(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	a := &accounts{clock: c}
	key := func(n int) [sha256.Size]byte { return sha256.Sum256(fmt.Append(nil, n)) }
	if _, known := a.of(key(0)); known {
		t.Error("something is known of nothing")
	}
	a.remember(key(0), "ann", c.Boot(), time.Minute)
	if name, known := a.of(key(0)); !known || name != "ann" {
		t.Errorf("%q, %v", name, known)
	}
	c.Advance(time.Minute)
	if _, known := a.of(key(0)); known {
		t.Error("it is known after its time")
	}
	for n := range 3 * maxAccounts {
		a.remember(key(n), "bob", c.Boot(), time.Minute)
	}
	if len(a.known) > maxAccounts {
		t.Errorf("%d are remembered", len(a.known))
	}
}
