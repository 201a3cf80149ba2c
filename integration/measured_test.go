package integration

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Where the measured rows stand, and the variable that names the output of benchmarks from
// which they are written anew (make benchdocs).
const (
	measuredPage  = "../docs/performance.md"
	measuredBegin = "<!-- begin measured -->\n"
	measuredEnd   = "<!-- end measured -->"
	outputVar     = "BENCH_OUTPUT"
)

// rowMark begins what a benchmark logs for the page.
const rowMark = "row: "

// logRow logs a row for the page: the median of what each round gave, with the middle half,
// and more words.
func logRow(b *testing.B, work, against, what, format string, values []float64, more string) {
	b.Helper()
	figure := fmt.Sprintf(format, median(values))
	if len(values) > 1 {
		sorted := slices.Sorted(slices.Values(values))
		number, _, _ := strings.Cut(format, " ")
		figure += fmt.Sprintf(" ("+number+" to "+number+")", sorted[len(sorted)/4], sorted[len(sorted)*3/4])
	}
	b.Log(rowMark + strings.Join([]string{b.Name(), work, against, what, figure + more}, " | "))
}

// logRatios logs the rows of ways that are compared.
func logRatios(b *testing.B, ways []*way) {
	b.Helper()
	for _, y := range ways {
		if y.against == nil || len(y.against.rates) != len(y.rates) {
			continue
		}
		logRow(b, y.name, y.against.name, "requests a second", "%.2f ×", shares(y.rates, y.against.rates),
			fmt.Sprintf(": %.0f against %.0f", median(y.rates), median(y.against.rates)))
		if y.pid != 0 && y.against.pid != 0 {
			logRow(b, y.name, y.against.name, "processor time", "%.2f ×", shares(y.cpu, y.against.cpu),
				fmt.Sprintf(": %.1f against %.1f µs", median(y.cpu), median(y.against.cpu)))
		}
	}
}

// measuredRow is a line of the table.
type measuredRow struct {
	benchmark, work, against, what, figure string
	// when says when, and on what machine.
	when string
}

func (r measuredRow) String() string {
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |\n", r.benchmark, r.work, r.against, r.what, r.figure, r.when)
}

var (
	loggedRow = regexp.MustCompile(`^\s+\w+\.go:\d+: ` + rowMark + `(.*)$`)
	tableRow  = regexp.MustCompile("^\\| `(Benchmark[^`]+)` \\| (.*) \\|$")
)

// readOutput reads the rows that benchmarks logged. Where one failed there are none.
func readOutput(output, day string) (rows []measuredRow, err error) {
	machine := fmt.Sprintf("%s, %d processors", runtime.GOARCH, runtime.NumCPU())
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if cpu, ok := strings.CutPrefix(line, "cpu: "); ok {
			machine = fmt.Sprintf("%s, %d processors", strings.TrimSpace(cpu), runtime.NumCPU())
		}
		if strings.HasPrefix(strings.TrimSpace(line), "--- FAIL") || strings.HasPrefix(line, "FAIL") {
			return nil, fmt.Errorf("a benchmark failed: %s", line)
		}
		found := loggedRow.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		cells := strings.Split(found[1], " | ")
		if len(cells) != 5 {
			return nil, fmt.Errorf("%d cells in %q", len(cells), found[1])
		}
		rows = append(rows, measuredRow{cells[0], cells[1], cells[2], cells[3], cells[4], day + ", " + machine})
	}
	if len(rows) == 0 {
		return nil, errors.New("no benchmark logged a row; they do with -v")
	}
	return rows, nil
}

// readTable reads the rows of the page.
func readTable(table string) (rows []measuredRow, err error) {
	for line := range strings.Lines(table) {
		found := tableRow.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if found == nil {
			continue
		}
		cells := strings.Split(found[2], " | ")
		if len(cells) != 5 {
			return nil, fmt.Errorf("%d cells in %q", len(cells), line)
		}
		rows = append(rows, measuredRow{found[1], cells[0], cells[1], cells[2], cells[3], cells[4]})
	}
	return rows, nil
}

// merged puts what was measured in the place of what the page says of the same benchmarks;
// of the others it stays.
func merged(page, output []measuredRow) (rows []measuredRow) {
	fresh := map[string][]measuredRow{}
	for _, r := range output {
		fresh[r.benchmark] = append(fresh[r.benchmark], r)
	}
	given := map[string]bool{}
	for _, r := range slices.Concat(page, output) {
		switch of := fresh[r.benchmark]; {
		case of == nil:
			rows = append(rows, r)
		case !given[r.benchmark]:
			given[r.benchmark] = true
			rows = append(rows, of...)
		}
	}
	return rows
}

func written(rows []measuredRow) string {
	var b strings.Builder
	b.WriteString("\n| benchmark | work | against | what | measured | when |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		b.WriteString(r.String())
	}
	return b.String() + "\n"
}

// rowsOfThePage are the benchmarks that the page must have rows of.
var rowsOfThePage = []string{
	"BenchmarkProgram", "BenchmarkLatency", "BenchmarkStreams", "BenchmarkDownload", "BenchmarkLong", "BenchmarkNewTunnels", "BenchmarkAllocations",
	"BenchmarkSquid", "BenchmarkMitmproxy", "BenchmarkTunnels",
}

// TestThePageHasTheMeasuredRows holds the table of measurements against the benchmarks that
// there are, and writes it from their output where that is named.
func TestThePageHasTheMeasuredRows(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(measuredPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), measuredBegin)
	table, after, closed := strings.Cut(rest, measuredEnd)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", measuredPage)
	}
	rows, err := readTable(table)
	if err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv(outputVar); file != "" {
		output, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := readOutput(string(output), time.Now().UTC().Format(time.DateOnly))
		if err != nil {
			t.Fatal(err)
		}
		rows = merged(rows, fresh)
		table = written(rows)
		if err := os.WriteFile(measuredPage, []byte(before+measuredBegin+table+measuredEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if table != written(rows) {
		t.Errorf("%s has a table that isn't of these rows:\n%s", measuredPage, table)
	}
	there := map[string]bool{}
	for _, r := range rows {
		name, _, _ := strings.Cut(r.benchmark, "/")
		there[name] = true
	}
	defined := map[string]bool{}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range regexp.MustCompile(`(?m)^func (Benchmark\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			defined[f[1]] = true
		}
	}
	for _, name := range rowsOfThePage {
		if !there[name] {
			t.Errorf("the page has no row of %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if !defined[name] {
			t.Errorf("%s is no benchmark", name)
		}
	}
}

// Output of benchmarks becomes rows, and takes the place of the rows of the same ones.
func TestTheOutputOfBenchmarksIsRead(t *testing.T) {
	t.Parallel()
	const output = `goos: linux
cpu: Some Processor @ 2.00GHz
=== RUN   BenchmarkOne
BenchmarkOne
    rows_bench_test.go:46: p50: direct 3 µs
    measured_test.go:41: row: BenchmarkOne/clients=16 | read | bare read | requests a second | 1.03 × (0.95 to 1.08): 7 against 6
    measured_test.go:41: row: BenchmarkOne/clients=16 | read | bare read | processor time | 0.90 × (0.85 to 1.00)
BenchmarkOne-2   	       1	1034 ns/op
    others_bench_test.go:9: not run: squid isn't on this machine
--- SKIP: BenchmarkTwo
PASS
`
	fresh, err := readOutput(output, "2026-01-02")
	if err != nil {
		t.Fatal(err)
	}
	when := fmt.Sprintf("2026-01-02, Some Processor @ 2.00GHz, %d processors", runtime.NumCPU())
	rate := measuredRow{"BenchmarkOne/clients=16", "read", "bare read", "requests a second", "1.03 × (0.95 to 1.08): 7 against 6", when}
	cpu := measuredRow{"BenchmarkOne/clients=16", "read", "bare read", "processor time", "0.90 × (0.85 to 1.00)", when}
	if !slices.Equal(fresh, []measuredRow{rate, cpu}) {
		t.Errorf("read %q", fresh)
	}
	zero, old, two := measuredRow{benchmark: "BenchmarkZero", figure: "1"}, rate, measuredRow{benchmark: "BenchmarkTwo", figure: "2"}
	old.figure, old.when = "9 ×", "long ago"
	page := []measuredRow{zero, old, two}
	if got, want := merged(page, fresh), []measuredRow{zero, rate, cpu, two}; !slices.Equal(got, want) {
		t.Errorf("merged into %q", got)
	}
	if got, want := merged(page[:1], fresh), []measuredRow{zero, rate, cpu}; !slices.Equal(got, want) {
		t.Errorf("a new one merged into %q", got)
	}
	if again, err := readTable(written(page)); err != nil || !slices.Equal(again, page) {
		t.Errorf("written and read it is %q, %v", again, err)
	}
	for name, broken := range map[string]string{
		"a failure":       output + "--- FAIL: BenchmarkThree\n",
		"a failed run":    strings.Replace(output, "PASS", "FAIL	keep-proxy/integration	1.2s", 1),
		"nothing":         "PASS\n",
		"a cell too much": strings.Replace(output, "requests a second", "requests | a second", 1),
	} {
		if rows, err := readOutput(broken, "2026-01-02"); err == nil {
			t.Errorf("%s: %q", name, rows)
		}
	}
}
