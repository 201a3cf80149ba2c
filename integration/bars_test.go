package integration

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// What make bench sets.
var (
	sliceFor = flag.Duration("slice", 0, "measure the table of bars: how long each side of a comparison takes its turn; 0: don't")
	turns    = flag.Int("slices", 7, "how many turns each side takes")
	records  = flag.Int("records", 0, "how many records the large ledger of the bars has; 0: leave it out")
	intoPage = flag.Bool("write", false, "write the rows into docs/performance.md")
)

// bar is a row of the table, with what it must reach.
type bar struct {
	row string
	// sign is ≥ or ≤.
	sign  string
	limit float64
	unit  string
}

// bars are all rows. The work is that of 16 clients, 1 KiB, TLS and an HTTP/1.1 upstream, unless a row says otherwise.
var bars = []bar{
	{"reads against a bare goproxy: rate", "≥", 1.1, "×"},
	{"reads against a bare goproxy: CPU", "≤", 0.9, "×"},
	{"pass-through against a bare goproxy's POST: rate", "≥", 1.1, "×"},
	{"durable mutations against own pass-through: rate", "≥", 0.33, "×"},
	{"durable mutations against own pass-through: CPU", "≤", 3.7, "×"},
	{"replays against own pass-through: rate", "≥", 1, "×"},
	{"reads against a bare goproxy, one client: rate", "≥", 1.15, "×"},
	{"durable mutation, one client, beyond pass-through and 2 commits", "≤", 350, "µs"},
	{"reads against a bare goproxy, HTTP/2 upstream: rate", "≥", 1, "×"},
	{"reads against a bare goproxy, HTTP/2 upstream: CPU", "≤", 1.1, "×"},
	{"run --isolate -- true beyond run -- true", "≤", 50, "ms"},
	{"time of a read, isolated, against the proxy variable: embedded proxy", "≤", 1.1, "×"},
	{"time of a read, transparent, against the proxy variable: embedded proxy", "≤", 1.1, "×"},
	{"time of a read, isolated, against the proxy variable: running proxy", "≤", 1.1, "×"},
	{"time of a read, transparent, against the proxy variable: running proxy", "≤", 1.1, "×"},
	{"durable mutations against DBOS and PostgreSQL, 1 client: rate", "≥", 2, "×"},
	{"durable mutations against DBOS and PostgreSQL, 1 client: CPU", "≤", 0.5, "×"},
	{"durable mutations against DBOS and PostgreSQL, 16 clients: rate", "≥", 2, "×"},
	{"durable mutations against DBOS and PostgreSQL, 16 clients: CPU", "≤", 0.5, "×"},
	{"durable mutations against DBOS and PostgreSQL, 64 clients: rate", "≥", 2, "×"},
	{"durable mutations against DBOS and PostgreSQL, 64 clients: CPU", "≤", 0.5, "×"},
	{"ledger commands of 64 writers against one sync each, 5 ms a sync: rate", "≥", 30, "×"},
	{"match and key of a JSON body of 2 KiB", "≤", 25, "µs"},
	{"match and key of a mutation of GraphQL", "≤", 60, "µs"},
	{"match and key of a mail of 20 KiB, with an attachment", "≤", 200, "µs"},
	{"match and key of a mail of 20 KiB, all quoted-printable", "≤", 200, "µs"},
	{"match and key with 60 connectors against 4", "≤", 1.1, "×"},
	{"load all bundled connectors", "≤", 200, "ms"},
	{"RssAnon, idle", "≤", 40, "MiB"},
	{"RssAnon, the most in a minute of mutations", "≤", 150, "MiB"},
	{"RssAnon, each of 2,000 tunnels", "≤", 64, "KiB"},
	{"claim in a ledger of 1 M records against an empty one: p50", "≤", 1.3, "×"},
	{"start with 1 M records", "≤", 3, "s"},
}

// judge says how a value stands to the bar.
func (b bar) judge(value float64) string {
	short := (b.limit - value) / b.limit // By which part of the bar it is missed.
	if b.sign == "≤" {
		short = -short
	}
	switch {
	case short <= 0:
		return "met"
	case short < 0.1:
		return "within a tenth"
	}
	return "missed"
}

// String are the cells that stand in the code.
func (b bar) String() string { return fmt.Sprintf("| %s | %s %v %s |", b.row, b.sign, b.limit, b.unit) }

// figure prints a value with three digits.
func figure(v float64) string {
	digits := 2
	for bound := 10.0; math.Abs(v) >= bound && digits > 0; bound *= 10 {
		digits--
	}
	return fmt.Sprintf("%.*f", digits, v)
}

// sheet is the table while it is filled.
type sheet struct {
	t testing.TB
	// rows are the lines by what stands in the first cell.
	rows map[string]string
}

// row prints a row: the median of what the turns gave, their middle half, and more words.
func (s *sheet) row(name string, values []float64, more string) {
	s.t.Helper()
	at := slices.IndexFunc(bars, func(b bar) bool { return b.row == name })
	if at < 0 || len(values) == 0 {
		s.t.Fatalf("%q is no row, or has no values: %v", name, values)
	}
	b := bars[at]
	measured := figure(median(values)) + " " + b.unit
	if len(values) > 1 {
		low, high := half(values)
		measured += " (" + figure(low) + " to " + figure(high) + ")"
	}
	s.rows[name] = fmt.Sprintf("%v %s%s | %s | %s, %s, %d processors |\n",
		b, measured, more, b.judge(median(values)), time.Now().UTC().Format(time.DateOnly), runtime.GOARCH, runtime.NumCPU())
	_, _ = os.Stdout.WriteString(s.rows[name])
}

// without says why rows are not measured.
func (s *sheet) without(what string, why any) {
	_, _ = fmt.Fprintf(os.Stdout, "| %s | | not measured: %v | |\n", what, why)
}

// The page and its table.
const (
	measuredPage = "../docs/performance.md"
	tableBegin   = "<!-- begin measured -->\n"
	tableHead    = "\n| row | bar | measured | | when |\n| --- | --- | --- | --- | --- |\n"
	tableEnd     = "\n<!-- end measured -->"
)

// page splits the page at its table, and returns the table's rows as a sheet has them.
func page(tb testing.TB) (before, after string, rows map[string]string) {
	tb.Helper()
	text, err := os.ReadFile(measuredPage)
	if err != nil {
		tb.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(text), tableBegin+tableHead)
	table, after, closed := strings.Cut(rest, tableEnd)
	if !begun || !closed {
		tb.Fatalf("%s has no place for the table", measuredPage)
	}
	rows = map[string]string{}
	for line := range strings.Lines(table) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		rows[name] = line
	}
	return before, after, rows
}

// write puts the rows into the page. One that was not measured stays.
func (s *sheet) write() {
	s.t.Helper()
	before, after, rows := page(s.t)
	table := tableHead
	for _, b := range bars {
		switch row := s.rows[b.row]; {
		case row != "":
			table += row
		case strings.HasPrefix(rows[b.row], b.String()):
			table += rows[b.row]
		default:
			table += b.String() + " not measured yet | | |\n"
		}
	}
	if err := os.WriteFile(measuredPage, []byte(before+tableBegin+table+tableEnd+after), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// The page has each bar, as it is here, and no other row.
func TestThePageHasTheBars(t *testing.T) {
	t.Parallel()
	_, _, rows := page(t)
	for _, b := range bars {
		if !strings.HasPrefix(rows[b.row], b.String()) {
			t.Errorf("the page has %q for %v", rows[b.row], b)
		}
	}
	if len(rows) != len(bars) {
		t.Errorf("the page has %d rows for %d bars", len(rows), len(bars))
	}
}

// A bar is met from its limit on, and missed by a tenth of it.
func TestABarJudges(t *testing.T) {
	t.Parallel()
	least, most := bar{sign: "≥", limit: 2}, bar{sign: "≤", limit: 2}
	for value, want := range map[float64][2]string{
		1: {"missed", "met"}, 1.85: {"within a tenth", "met"}, 2: {"met", "met"}, 2.15: {"met", "within a tenth"}, 3: {"met", "missed"},
	} {
		if got := [2]string{least.judge(value), most.judge(value)}; got != want {
			t.Errorf("%v is %q, want %q", value, got, want)
		}
	}
}
