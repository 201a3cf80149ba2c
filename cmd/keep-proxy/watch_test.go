package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestWatchingWritesWhatChanges(t *testing.T) {
	t.Parallel()
	pages := []string{"a\n", "a\n", "b\n", "b\n"}
	ended := errors.New("the proxy has gone")
	for terminal, want := range map[bool]string{
		false: "a\nb\n",
		true:  clearScreen + "a\n" + clearScreen + "b\n",
	} {
		ticks := make(chan time.Time, len(pages))
		for range pages {
			ticks <- time.Time{}
		}
		var out strings.Builder
		n := 0
		err := watch(t.Context(), &out, terminal, ticks, func() (string, error) {
			if n++; n > len(pages) {
				return "", ended
			}
			return pages[n-1], nil
		})
		if !errors.Is(err, ended) || out.String() != want {
			t.Errorf("on a terminal %v: %q, %v; want %q", terminal, out.String(), err, want)
		}
	}
}

func TestWatchingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	err := watch(ctx, &out, false, nil, func() (string, error) {
		cancel()
		return "a\n", nil
	})
	if err != nil || out.String() != "a\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
