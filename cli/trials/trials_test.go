package trials_test

import (
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/cli/trials"
	"keep-proxy/connectors"
)

// run tries a bundled connector against its fake.
func run(t *testing.T, name string) trials.Report {
	t.Helper()
	fake, err := connectors.Fake(name)
	if err != nil {
		t.Fatal(err)
	}
	report, err := trials.Run(t.Context(), trials.Options{Name: name, Fake: fake, Version: "test", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestBundledConnectorsPassTheirTrials(t *testing.T) {
	t.Parallel()
	files, err := connectors.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, err := connectors.Fake(f.Name); err != nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			report := run(t, f.Name)
			if report.Failed() {
				t.Errorf("trials failed:\n%s", report.Text())
			}
		})
	}
}
