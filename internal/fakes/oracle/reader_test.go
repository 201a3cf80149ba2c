package oracle_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"keep-proxy/internal/fakes/oracle"
)

// However a file grows, its reader counts what reading it whole counts, and leaves alone
// what it has given before.
func TestTheReaderCountsWhatReadingItWholeCounts(t *testing.T) {
	t.Parallel()
	effect := func(identity string) string { return `{"kind":"effect","identity":"` + identity + `"}` + "\n" }
	path := filepath.Join(t.TempDir(), "log")
	r := oracle.NewReader(path)
	if tally, err := r.Tally(); err != nil || len(tally.Events) != 0 {
		t.Fatalf("of no file: %+v, %v", tally, err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var given, held []oracle.Tally
	for _, part := range []string{effect("a"), effect("b")[:9], effect("b")[9:], "{\"to", "rn\n" + effect("c") + effect("a"), "", effect("d")} {
		if _, err := file.WriteString(part); err != nil {
			t.Fatal(err)
		}
		got, err := r.Tally()
		want, wholeErr := oracle.Read(path)
		if err != nil || wholeErr != nil || len(got.Events) != len(want.Events) || got.Torn != want.Torn {
			t.Fatalf("behind %q: %+v, %v, want %+v, %v", part, got, err, want, wholeErr)
		}
		given, held = append(given, got), append(held, want)
	}
	for i := range given {
		if !reflect.DeepEqual(given[i], held[i]) {
			t.Errorf("%d: %+v, want %+v", i, given[i], held[i])
		}
	}
}

func TestAWitnessThatLostLinesIsAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log := open(t, path)
	appendAll(t, log, oracle.Event{Kind: oracle.KindHead}, oracle.Event{Kind: oracle.KindEffect, Identity: "a"})
	if tally, err := log.Tally(); err != nil || tally.Effects("a") != 1 {
		t.Fatalf("%+v, %v", tally, err)
	}
	for _, lose := range []func() error{
		func() error { return os.Truncate(path, 40) },
		func() error { return os.Remove(path) },
	} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		if tally, err := log.Tally(); err == nil {
			t.Errorf("%+v", tally)
		}
	}
}

// A line that isn't understood is not skipped when somebody asks again.
func TestTheReaderStaysAtALineThatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(`{"kind":"head"}`+"\n"+`{"kind":"guess"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := oracle.NewReader(path)
	for range 2 {
		if tally, err := r.Tally(); err == nil {
			t.Errorf("%+v", tally)
		}
	}
}
