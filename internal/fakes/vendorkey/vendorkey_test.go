package vendorkey_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/vendorkey"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestLifeOfAKey(t *testing.T) {
	t.Parallel()
	keys := vendorkey.New(time.Hour)
	expect := func(name, scope, key, digest string, at time.Time, want vendorkey.Meaning) oracle.Kept {
		t.Helper()
		got, kept := keys.Begin(scope, key, digest, at)
		if got != want {
			t.Errorf("%s: meaning %d, want %d", name, got, want)
		}
		return kept
	}
	expect("a new key", "", "k", "d1", noon, vendorkey.Fresh)
	expect("while it runs", "", "k", "d1", noon, vendorkey.Busy)
	expect("while it runs, another request", "", "k", "d2", noon, vendorkey.Mismatch)
	expect("however long it runs", "", "k", "d1", noon.Add(2*time.Hour), vendorkey.Busy)
	expect("in another scope", "acct", "k", "d2", noon, vendorkey.Fresh)
	keys.Keep(*vendorkey.Kept("", "k", "d1", 201, http.Header{"Location": {"/1"}, "Date": {"now"}}, []byte("one")), noon)
	kept := expect("once it is kept", "", "k", "d1", noon.Add(time.Hour-1), vendorkey.Replay)
	if kept.Status != 201 || string(kept.Body) != "one" || kept.Header["Location"] != "/1" || len(kept.Header) != 1 {
		t.Errorf("kept %+v", kept)
	}
	expect("another request under it", "", "k", "d2", noon, vendorkey.Mismatch)
	expect("when the window is over", "", "k", "d2", noon.Add(time.Hour), vendorkey.Fresh)
	keys.Drop("", "k")
	expect("after it was dropped", "", "k", "d1", noon, vendorkey.Fresh)
}

func TestShorterWindowForgetsWhatIsKept(t *testing.T) {
	t.Parallel()
	keys := vendorkey.New(time.Hour)
	keys.Keep(oracle.Kept{Key: "k", Digest: "d"}, noon)
	keys.SetWindow(time.Minute)
	if got, _ := keys.Begin("", "k", "d", noon.Add(time.Minute)); got != vendorkey.Fresh {
		t.Errorf("meaning %d, want fresh", got)
	}
}

func TestRestoreKnowsTheAgeOfKeys(t *testing.T) {
	t.Parallel()
	keys := vendorkey.New(time.Hour)
	keys.Restore([]oracle.Event{
		{Kind: oracle.KindEffect, At: noon, Kept: &oracle.Kept{Key: "old", Digest: "d"}},
		{Kind: oracle.KindKept, At: noon.Add(30 * time.Minute), Kept: &oracle.Kept{Scope: "s", Key: "young", Digest: "d"}},
		{Kind: oracle.KindEffect, At: noon},
	})
	now := noon.Add(70 * time.Minute)
	if got, _ := keys.Begin("", "old", "d", now); got != vendorkey.Fresh {
		t.Errorf("a key older than the window means %d", got)
	}
	if got, _ := keys.Begin("s", "young", "d", now); got != vendorkey.Replay {
		t.Errorf("a key inside the window means %d", got)
	}
}

func TestOneOfManyRuns(t *testing.T) {
	t.Parallel()
	keys := vendorkey.New(time.Hour)
	var fresh, busy atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			switch meaning, _ := keys.Begin("", "k", "d", noon); meaning {
			case vendorkey.Fresh:
				fresh.Add(1)
			case vendorkey.Busy:
				busy.Add(1)
			case vendorkey.Replay, vendorkey.Mismatch:
				t.Errorf("meaning %d of a key that was just taken in", meaning)
			}
		})
	}
	wg.Wait()
	if fresh.Load() != 1 || busy.Load() != 49 {
		t.Errorf("%d fresh and %d busy, want 1 and 49", fresh.Load(), busy.Load())
	}
}
