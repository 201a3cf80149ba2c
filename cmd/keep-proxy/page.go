package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

// page gathers what a command shows to a person.
type page struct {
	bytes.Buffer

	// flags are those by which another command finds the same ledger.
	flags string
}

// show writes v as JSON if --json says so, else as a page.
func show[T any](cmd *cobra.Command, v T, write func(*page, T)) error {
	if asJSON(cmd) {
		return writeJSON(cmd.OutOrStdout(), v)
	}
	return showPage(cmd.OutOrStdout(), again(cmd), func(p *page) { write(p, v) })
}

// showPage writes one page.
func showPage(w io.Writer, flags string, write func(*page)) error {
	p := &page{flags: flags}
	write(p)
	_, err := p.WriteTo(w)
	return err
}

// writeJSON writes v as indented JSON, names in a stable order.
func writeJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// writeLine writes v as one line of JSON.
func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

func (p *page) sayf(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// on gives the commands that a text names the flags of this one.
func (p *page) on(text string) string { return onSameLedger(p.flags, text) }

// rows writes lines whose cells are parted by tabs in aligned columns.
func (p *page) rows(lines ...string) {
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(t, line)
	}
	_ = t.Flush() // A buffer takes everything.
}

// facts writes names and values in two columns; empty values are left out.
func (p *page) facts(pairs ...string) {
	var lines []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			lines = append(lines, pairs[i]+"\t"+printable(pairs[i+1]))
		}
	}
	p.rows(lines...)
}

// columns are a table of records: its head, parted by tabs, and the cells of a record.
type columns[T any] struct {
	head string
	row  func(T) []string
}

// table writes records under a head; nothing for no records.
func (c columns[T]) table(p *page, list []T) {
	if len(list) == 0 {
		return
	}
	lines := []string{c.head}
	for _, r := range list {
		lines = append(lines, strings.Join(c.row(r), "\t"))
	}
	p.rows(lines...)
}

// section writes a table under a title; nothing for no records.
func section[T any](p *page, title, head string, list []T, row func(T) []string) {
	if len(list) > 0 {
		p.sayf("\n%s:", title)
		columns[T]{head, row}.table(p, list)
	}
}

// cells is the row of a table whose rows are made beforehand.
func cells(row []string) []string { return row }

// printable keeps text of other systems from driving the terminal, and from being shown in another order.
// Control characters, and those that end a line or turn the direction of writing, become spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
}

// clip shortens a text for a table's column.
func clip(text string, n int) string {
	runes := []rune(printable(text))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}

// counted says how many there are of a noun whose plural takes an s.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ago says how long ago something was, coarsely.
func ago(now, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	d := max(now.Sub(at), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// age says how long ago something was by now.
func age(at time.Time) string { return ago(time.Now(), at) }

// stamp writes a time for a person, in local time.
func stamp(t time.Time) string { return stampIn(t, time.Local) }

// stampIn writes a time with its zone: the API's sentences, and most other systems, tell it in UTC.
func stampIn(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format("2006-01-02 15:04:05.000Z07:00")
}

// A person is told of what takes longer than progressAfter, and again every progressEvery.
const (
	progressAfter = time.Second
	progressEvery = 500 * time.Millisecond
)

// progress tells how far something is. On a terminal it writes one line over and over, elsewhere one after the other.
type progress struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	next  time.Time
	wrote bool
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, terminal: isTerminal(out), next: time.Now().Add(progressAfter)}
}

// step tells how far it is, if it is time to; total is 0 if it isn't known.
func (p *progress) step(what string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next, p.wrote = now.Add(progressEvery), true
	text := fmt.Sprintf("%s: %d", what, done)
	if total > 0 {
		text += fmt.Sprintf(" of %d", total)
	}
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// end takes the line away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrote && p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// written counts what is written through it as progress.
type written struct {
	io.Writer
	p    *progress
	done int64
}

// Write implements io.Writer.
func (w *written) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.done += int64(n)
	w.p.step("bytes written", w.done, 0)
	return n, err
}
