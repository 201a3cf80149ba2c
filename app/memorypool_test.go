package app

import (
	"sync"
	"testing"
)

// A pool's content outlives one collection.
func TestMemoryIsGivenBackWithWhatPoolsHold(t *testing.T) { //nolint:paralleltest // Others collect, too.
	var pool sync.Pool
	for range 100 { // A pool drops some of it at random under the race detector.
		pool.Put(new([1 << 10]byte))
	}
	giveBack()
	if pool.Get() != nil {
		t.Error("a pool still holds what nobody uses")
	}
}
