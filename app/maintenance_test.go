package app

import (
	"bytes"
	"errors"
	"testing"

	"keep-proxy/ledger"
)

func TestAnArchiveEndsWhereThereIsNoRoomForIt(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	var low error
	w := whileRoom{&b, func() error { return low }}
	if n, err := w.Write([]byte("all")); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	low = ledger.ErrLowSpace
	if n, err := w.Write([]byte("more")); n != 0 || !errors.Is(err, ledger.ErrLowSpace) || b.String() != "all" {
		t.Errorf("%d, %v, %q", n, err, b.String())
	}
}
