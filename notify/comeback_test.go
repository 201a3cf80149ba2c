package notify

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"
)

func TestAQueueThatCannotBeWrittenHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &fakeDestination{name: "pager"}
	n, err := New(Config{
		Ledger: w.Ledger, Path: filepath.Join(t.TempDir(), "gone", "notify.json"), Destinations: []Destination{d}, PublicURL: "https://keep.test",
		Now: time.Now, Log: w.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, b := w.ask('a'), w.ask('b')
	if err := n.Last(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("that it isn't durable is told as %v", err)
	}
	want(t, d, a+"-1-opened", b+"-1-opened")
	if s := n.Status(); s[0].Tries != 0 || s[0].Error != "" || s[0].Waiting != 0 {
		t.Errorf("status %+v", s)
	}
}
