package app

import "testing"

func TestDescriptorsAreLeftToTheLedger(t *testing.T) {
	t.Parallel()
	for limit, want := range map[uint64]int{0: 0, 256: 128, 1024: 512, 20_000: 19_488, ^uint64(0): 1<<30 - spareDescriptors} {
		if got := clientDescriptors(limit, 0); got != want {
			t.Errorf("of %d descriptors %d are the clients', want %d", limit, got, want)
		}
	}
}

// A ledger of some gigabytes holds more descriptors than half of a small limit: what is
// left is shared, and not refused to every client.
func TestALargeLedgerLeavesDescriptorsToClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, used uint64
		want        int
	}{{1024, 632, 828}, {1024, 1023, 1024}, {1024, 2000, 1024}, {20_000, 632, 19_488}} {
		if got := clientDescriptors(c.limit, c.used); got != c.want {
			t.Errorf("of %d descriptors, %d of them in use, the highest of a client is %d, want %d", c.limit, c.used, got, c.want)
		}
	}
	if used := usedDescriptors(); used < 3 {
		t.Errorf("%d descriptors are in use", used)
	}
}
