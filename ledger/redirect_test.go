package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func redirects(to string) func(*ledger.EndDispatch) {
	return func(f *ledger.EndDispatch) { f.PassedOn, f.MovedTo = true, to }
}

func sentTo(to string) func(*ledger.Claim) { return func(q *ledger.Claim) { q.SentTo = to } }

// redirected are the names of the item's mutations that it lists, in order.
func (w *world) redirected(names ...string) (got, want []ledger.Key) {
	w.t.Helper()
	w.ok(w.View(w.t.Context(), func(v ledger.View) error {
		i, err := v.Item("w", "i")
		if err == nil {
			got = i.Redirected
		}
		return err
	}))
	for _, name := range names {
		want = append(want, key(name))
	}
	return got, want
}

func TestAnItemListsItsLatestRedirectedMutations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.finish("plain", w.send(r, "plain"), ledger.VerdictApplied)
	var names []string
	for n := range 70 {
		name := fmt.Sprint("m", n)
		names = append(names, name)
		w.finish(name, w.send(r, name), ledger.VerdictFailed, class(verdict.Logic), redirects("https://a.test/b"))
		w.finish(name, w.send(r, name), ledger.VerdictFailed, class(verdict.Logic), redirects("https://a.test/b"))
	}
	if s := w.run(r.ID).State; s != ledger.RunRunning {
		t.Errorf("the run is %s", s)
	}
	w.restart()
	if got, want := w.redirected(names[6:]...); !slices.Equal(got, want) {
		t.Errorf("%d are listed, want the latest %d", len(got), len(want))
	}
}

func TestARecordKnowsWhereItWasSent(t *testing.T) {
	t.Parallel()
	const to = "https://a.test/b"
	w := newWorld(t)
	r := w.open()
	wants := func(when, sent, moved string) {
		t.Helper()
		if m := w.mutation("a"); m.SentTo != sent || m.MovedTo != moved {
			t.Errorf("%s: sent to %q, moved to %q", when, m.SentTo, m.MovedTo)
		}
	}
	w.finish("a", w.send(r, "a", nativeKey), ledger.VerdictFailed, class(verdict.Logic), redirects(to))
	wants("after the redirect", "", to)
	first := w.mutation("a")
	d := w.send(r, "a", nativeKey, sentTo(to))
	wants("followed", to, to)
	w.finish("a", d, ledger.VerdictUncertain)
	wants("its answer lost", to, "")
	if m := w.mutation("a"); m.Generation != first.Generation+1 || m.VendorKey == first.VendorKey {
		t.Errorf("generation %d under the key of before", m.Generation)
	}
	d = w.resend("a")
	wants("sent again", to, "")
	w.finish("a", d, ledger.VerdictNotSent)
	w.decide("a", ledger.OnDidNotHappen, force)
	w.send(w.open(), "a", nativeKey)
	wants("asked at its own address again", "", "")
}
