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
		err := watch(t.Context(), &out, &out, terminal, ticks, func() (page, note string, err error) {
			if n++; n > len(pages) {
				return "", "", ended
			}
			return pages[n-1], "", nil
		})
		if !errors.Is(err, ended) || out.String() != want {
			t.Errorf("on a terminal %v: %q, %v; want %q", terminal, out.String(), err, want)
		}
	}
}

func TestWhatIsToldOfAPageStandsBelowIt(t *testing.T) {
	t.Parallel()
	notes := []string{"", "there is more\n", "there is more\n"}
	ended := errors.New("the proxy has gone")
	for terminal, want := range map[bool]string{
		false: "a\na\nthere is more\n",
		true:  clearScreen + "a\n" + clearScreen + "a\nthere is more\n",
	} {
		ticks := make(chan time.Time, len(notes))
		for range notes {
			ticks <- time.Time{}
		}
		var out strings.Builder
		n := 0
		err := watch(t.Context(), &out, &out, terminal, ticks, func() (page, note string, err error) {
			if n++; n > len(notes) {
				return "", "", ended
			}
			return "a\n", notes[n-1], nil
		})
		if !errors.Is(err, ended) || out.String() != want {
			t.Errorf("on a terminal %v: %q, %v; want %q", terminal, out.String(), err, want)
		}
	}
}

func TestAWatchedListingTellsThatItIsNotAll(t *testing.T) {
	flag := askedAt(t, map[string]string{"/v1/runs?limit=50": `{"items":[{"id":"r1","state":"running"}],"next":"aa"}`})
	ctx, cancel := context.WithCancel(t.Context())
	screen := &onceShown{head: "ID", then: cancel}
	code := run(ctx, []string{"runs", "list", "--watch", flag}, streams{strings.NewReader(""), screen, screen})
	page, told, _ := strings.Cut(screen.all.String(), "There is more: add --cursor aa\n")
	if code != codeOK || !strings.Contains(page, "r1") || told != "" {
		t.Errorf("code %d, written %q", code, screen.all.String())
	}
}

// onceShown ends what is watched once a page with this head stands there.
type onceShown struct {
	all  strings.Builder
	head string
	then func()
}

func (o *onceShown) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), o.head) {
		o.then()
	}
	return o.all.Write(p)
}

func TestWatchingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	err := watch(ctx, &out, &out, false, nil, func() (page, note string, err error) {
		cancel()
		return "a\n", "", nil
	})
	if err != nil || out.String() != "a\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
