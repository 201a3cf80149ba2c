package proxy

import (
	"context"
	"testing"

	"keep-proxy/ledger"
)

// called enters a caller of another run, and wants a role for it.
func called(t *testing.T, f *calls, k ledger.Key, run string, want role) (*keyCaller, *call) {
	t.Helper()
	c := &keyCaller{run: run, payload: "p", client: t.Context()}
	got, call := f.enter(k, c)
	if got != want {
		t.Fatalf("the caller of %s gets role %d, want %d", run, got, want)
	}
	return c, call
}

// Whoever asks when the work is over gets no answer of that time, though its leader may still be
// at its delivery: the ledger says what holds now.
func TestNobodyWaitsForWhatIsAnswered(t *testing.T) {
	t.Parallel()
	f, k := newCalls(), ledger.Key{1}
	_, first := called(t, f, k, "one", roleLead)
	_, joined := called(t, f, k, "two", roleWait)
	if joined != first {
		t.Error("it joined something else")
	}
	f.answer(k, first, &reply{})
	if _, second := called(t, f, k, "three", roleLead); second == first {
		t.Error("it leads what is answered")
	}
}

// A key of which nobody asks any more takes no room.
func TestAKeyWithoutCallersIsForgotten(t *testing.T) {
	t.Parallel()
	f, k := newCalls(), ledger.Key{1}
	one, call := called(t, f, k, "one", roleLead)
	two, _ := called(t, f, k, "two", roleWait)
	f.answer(k, call, &reply{})
	f.leave(k, one)
	if len(f.byKey) != 1 {
		t.Error("the key is forgotten although there is a caller")
	}
	f.leave(k, two)
	if len(f.byKey) != 0 {
		t.Error("the key is kept")
	}
	f.leave(k, two)
	called(t, f, k, "three", roleLead)
}

// Who has left waits for nothing: neither for an inline try, nor for a person, nor for what is
// sent again. It would ask, and wait, for the whole time of the hold. Nor does anybody when the
// proxy shuts down.
func TestWhoHasLeftWaitsForNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Hold = waitLimit })
	wantAnswer(t, w.open("a").post("/pay", payX), 201, `{"id":1}`, false)
	applied := w.mutation("a").Key // Nobody has to wait for it.
	stopped := []ledger.Blocker{{Key: ledger.Key{1}, ID: "m-1", State: ledger.Indeterminate}}
	gone, leave := context.WithCancel(t.Context())
	leave()
	waits := func(client context.Context, want bool, who string) {
		t.Helper()
		if got := w.proxy.await(client, stopped, &patience{}); got != want {
			t.Errorf("%s asks again about what is stopped: %t", who, got)
		}
		if got := w.proxy.awaitRedispatch(client, applied); got != want {
			t.Errorf("%s asks again about what was sent again: %t", who, got)
		}
	}
	waits(t.Context(), true, "who is there")
	waits(gone, false, "who has left")
	end := w.proxy.inline.begin(stopped[0].Key)
	if w.proxy.await(gone, stopped, &patience{}) {
		t.Error("who has left asks again about what is being tried")
	}
	end()
	w.proxy.drain()
	waits(t.Context(), false, "who is there while the proxy shuts down")
}
