package app

import "testing"

func TestDescriptorsAreLeftToTheLedger(t *testing.T) {
	t.Parallel()
	for limit, want := range map[uint64]int{0: 0, 256: 128, 1024: 512, 20_000: 19_488, ^uint64(0): 1<<30 - spareDescriptors} {
		if got := clientDescriptors(limit); got != want {
			t.Errorf("of %d descriptors %d are the clients', want %d", limit, got, want)
		}
	}
}
