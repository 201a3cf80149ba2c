package trials_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/cli/trials"
	"keep-proxy/connectors"
)

var update = flag.Bool("update", false, "write docs/connectors from the trials")

// few are tried with the race detector, too. With it all of them would take minutes.
var few = []string{"google-calendar", "mcp", "slack-hooks", "webhook"}

func TestBundledConnectorsPassTheirTrials(t *testing.T) {
	t.Parallel()
	for _, name := range few {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, name)
		})
	}
}

// try runs the trials of a bundled connector, nil for one without a fake.
func try(t *testing.T, name string) *trials.Report {
	t.Helper()
	fake, err := connectors.Fake(name)
	if err != nil {
		return nil
	}
	report, err := trials.Run(t.Context(), trials.Options{Name: name, Fake: fake, Version: "test", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if report.Failed() {
		t.Errorf("trials failed:\n%s", report.Text())
	}
	return &report
}

// TestTheConnectorPages tries every bundled connector, and compares docs/connectors with what came of it.
func TestTheConnectorPages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not run: it takes half a minute")
	}
	files, err := connectors.Files()
	if err != nil {
		t.Fatal(err)
	}
	reports := make([]trials.Report, len(files))
	t.Run("connectors", func(t *testing.T) {
		for i, f := range files {
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				if report := try(t, f.Name); report != nil {
					reports[i] = *report
				}
			})
		}
	})
	var others []string
	for i, f := range files {
		if reports[i].Connector == "" {
			others = append(others, f.Name)
		}
	}
	reports = slices.DeleteFunc(reports, func(r trials.Report) bool { return r.Connector == "" })
	pages := map[string]string{"README": trials.Summary(reports, others)}
	for _, r := range reports {
		pages[r.Connector] = r.Page()
	}
	const dir = "../../docs/connectors"
	for name, want := range pages {
		file := filepath.Join(dir, name+".md")
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what the trials say (%v); run make trials", file, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := pages[strings.TrimSuffix(e.Name(), ".md")]; !ok {
			t.Errorf("%s/%s is about no bundled connector", dir, e.Name())
		}
	}
}
