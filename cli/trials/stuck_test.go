package trials

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/fakes/data"
	"keep-proxy/internal/fakes/script"
)

// refunds are the options to try the connector of refunds.
func refunds(t *testing.T) Options {
	t.Helper()
	connector, err := os.ReadFile("testdata/refunds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fake, err := os.ReadFile("../../internal/fakes/data/testdata/refunds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return Options{Connector: connector, Fake: fake, Version: "test", Log: zerolog.Nop()}
}

func TestATrialThatNeverEndsHasFailed(t *testing.T) {
	t.Parallel()
	o := refunds(t)
	o.patience = time.Second
	fake, err := data.Load(o.Fake)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{o: o, clock: clock.NewFake(began), fake: fake}
	if err := b.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	}()
	never := Kind{Name: "never", run: func(t *trial) (Cell, error) {
		return t.faulty("never", script.Step{Do: script.Wait, Hold: "never"}, commit, script.Step{Do: script.Answer})
	}}
	before := b.app
	cell, err := b.try(t.Context(), never, b.samples[0])
	if err != nil || cell.Outcome != Failed || !strings.Contains(cell.Said, "item a") {
		t.Errorf("%+v, %v: want a failure that names what it waits for", cell, err)
	}
	if b.app == before {
		t.Error("the next trial gets the program that was stuck")
	}
	b.o.patience = 0
	i := slices.IndexFunc(Kinds(), func(k Kind) bool { return k.Name == "applied" })
	if cell, err = b.try(t.Context(), Kinds()[i], b.samples[0]); err != nil || cell.Outcome != OK {
		t.Errorf("the next trial: %+v, %v", cell, err)
	}
}

func TestOperationsAreTriedAsAsked(t *testing.T) {
	t.Parallel()
	o := refunds(t)
	o.only = []string{"applied"}
	var tried []string
	o.Each = func(r Row) { tried = append(tried, r.Operation) }
	o.Operations = []string{"refund.create"}
	report, err := Run(t.Context(), o)
	if err != nil || len(report.Rows) != 1 || !slices.Equal(tried, o.Operations) {
		t.Errorf("%d rows, tried %v, %v", len(report.Rows), tried, err)
	}
	o.Operations = []string{"refund.create", "refund.undo"}
	if report, err = Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "refund.undo") {
		t.Errorf("%d rows, %v: want an error that names what there isn't", len(report.Rows), err)
	}
}
