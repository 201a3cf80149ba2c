package oracle_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/internal/fakes/oracle"
)

func open(t *testing.T, path string) *oracle.Log {
	t.Helper()
	log, err := oracle.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func appendAll(t *testing.T, log *oracle.Log, events ...oracle.Event) {
	t.Helper()
	for _, e := range events {
		if err := log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTallyCountsByKindAndIdentity(t *testing.T) {
	t.Parallel()
	log := open(t, filepath.Join(t.TempDir(), "log"))
	appendAll(t, log,
		oracle.Event{Kind: oracle.KindHead},
		oracle.Event{Kind: oracle.KindReceived, Identity: "a"},
		oracle.Event{Kind: oracle.KindEffect, Identity: "a", Details: json.RawMessage(`{"n":1}`)},
		oracle.Event{Kind: oracle.KindHead},
		oracle.Event{Kind: oracle.KindReceived, Identity: "a"},
		oracle.Event{Kind: oracle.KindEffect, Identity: "a"},
		oracle.Event{Kind: oracle.KindReceived, Identity: "b"},
		oracle.Event{Kind: oracle.KindKept, Identity: "b", Kept: &oracle.Kept{Key: "k"}},
		oracle.Event{Kind: oracle.KindAnswered, Identity: "b", Status: 500},
	)
	tally, err := log.Tally()
	if err != nil {
		t.Fatal(err)
	}
	got := []int{tally.Sends("a"), tally.Effects("a"), tally.Answers("a"), tally.Sends("b"), tally.Effects("b"), tally.Answers("b"), tally.Heads(), tally.Effects("c")}
	if want := []int{2, 2, 0, 1, 0, 1, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	if got := tally.Twice(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("twice: %v", got)
	}
	if got := tally.Identities(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("identities: %v", got)
	}
	if e := tally.Events[2]; e.Seq != 3 || string(e.Details) != `{"n":1}` || e.At.IsZero() {
		t.Errorf("third event %+v", e)
	}
}

func TestTimesComeFromTheGivenClock(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	log, err := oracle.Open(filepath.Join(t.TempDir(), "log"), func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	appendAll(t, log, oracle.Event{Kind: oracle.KindHead})
	if tally, err := log.Tally(); err != nil || !tally.Events[0].At.Equal(at) {
		t.Errorf("events %+v, %v, want time %v", tally.Events, err, at)
	}
}

func TestOneWriterAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	first := open(t, path)
	if _, err := oracle.Open(path, nil); !errors.Is(err, oracle.ErrLocked) {
		t.Fatalf("a second writer got %v, want ErrLocked", err)
	}
	appendAll(t, first, oracle.Event{Kind: oracle.KindHead})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, path)
	appendAll(t, second, oracle.Event{Kind: oracle.KindHead})
	if tally, err := second.Tally(); err != nil || tally.Heads() != 2 {
		t.Errorf("%d heads (%v), want those of both writers", tally.Heads(), err)
	}
}

func TestTornLineIsClosedAndCounted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	whole := `{"at":"2026-01-01T00:00:00Z","kind":"effect","identity":"a"}` + "\n"
	if err := os.WriteFile(path, []byte(whole+whole[:30]), 0o600); err != nil {
		t.Fatal(err)
	}
	if tally, err := oracle.Read(path); err != nil || tally.Effects("a") != 1 || tally.Torn != 0 {
		t.Fatalf("before: %+v, %v, want the unfinished line left out", tally, err)
	}
	log := open(t, path)
	appendAll(t, log, oracle.Event{Kind: oracle.KindEffect, Identity: "b"})
	tally, err := log.Tally()
	if err != nil || tally.Torn != 1 || tally.Effects("a") != 1 || tally.Effects("b") != 1 {
		t.Errorf("after: %+v, %v, want one torn line between a and b", tally, err)
	}
	if tally.Events[1].Seq != 3 {
		t.Errorf("b is line %d, want 3", tally.Events[1].Seq)
	}
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"an unknown kind": `{"kind":"guess"}`,
		"no kind":         `{}`,
		"another type":    `{"kind":7}`,
		"not an object":   `[]`,
	} {
		if tally, err := oracle.Parse([]byte(line + "\n")); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %+v, %v, want an error that names the line", name, tally, err)
		}
	}
}

func TestAppendFailsForGoodOnceItFailed(t *testing.T) {
	t.Parallel()
	log := open(t, filepath.Join(t.TempDir(), "log"))
	if err := log.Append(oracle.Event{Kind: "guess"}); err == nil {
		t.Error("an unknown kind was written")
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := log.Append(oracle.Event{Kind: oracle.KindHead}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("append after Close: %v", err)
		}
	}
	if err := log.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestConcurrentAppendsStayWhole(t *testing.T) {
	t.Parallel()
	log := open(t, filepath.Join(t.TempDir(), "log"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := log.Append(oracle.Event{Kind: oracle.KindReceived, Identity: "a", Body: make([]byte, 5000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if tally, err := log.Tally(); err != nil || tally.Sends("a") != 160 || tally.Torn != 0 {
		t.Errorf("%d sends, %d torn, %v, want 160 whole ones", tally.Sends("a"), tally.Torn, err)
	}
}

func TestWaitSeesAnotherWritersLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	looked := make(chan struct{})
	go func() {
		<-looked
		log, err := oracle.Open(path, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = log.Close() }()
		if err := log.Append(oracle.Event{Kind: oracle.KindEffect, Identity: "a"}); err != nil {
			t.Error(err)
		}
	}()
	once := sync.OnceFunc(func() { close(looked) })
	tally, err := oracle.Wait(t.Context(), path, func(t oracle.Tally) bool {
		defer once()
		return t.Effects("a") > 0
	})
	if err != nil || tally.Effects("a") != 1 {
		t.Errorf("%+v, %v", tally, err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := oracle.Wait(ctx, filepath.Join(t.TempDir(), "none"), func(oracle.Tally) bool {
		cancel()
		return false
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "0 events") {
		t.Errorf("error %v, want the context's with what was there", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"at":"2026-01-01T00:00:00Z","kind":"effect","identity":"a"}` + "\n"))
	f.Add([]byte("{\n\n{\"kind\":\"head\"}\n{"))
	f.Add([]byte(`{"kind":"kept","kept":{"key":"k","body":"AA=="}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tally, err := oracle.Parse(data)
		if err != nil {
			return
		}
		lines := strings.Count(string(data), "\n")
		if len(tally.Events)+tally.Torn != lines {
			t.Errorf("%d events and %d torn of %d lines", len(tally.Events), tally.Torn, lines)
		}
	})
}
