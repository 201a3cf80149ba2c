package main

import (
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/config"
)

const (
	// logDelay is how long lines of level info wait for others.
	logDelay = 50 * time.Millisecond
	// firstDelay is how long all but errors wait for the first line of all.
	firstDelay = time.Second
	// fullLog is written without a wait, in bytes.
	fullLog = 64 << 10
)

// jsonLog gathers lines, so that one write takes many of them. Warnings and errors are written at once, with what waits
// before them.
type jsonLog struct {
	out io.Writer

	mu    sync.Mutex
	lines []byte
	// waits says that lines are written later, begun that the first line of all is.
	waits, begun bool
}

// WriteLevel implements zerolog.LevelWriter.
func (j *jsonLog) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line...)
	delay := logDelay
	if !j.begun {
		delay = firstDelay
	}
	switch {
	case level >= zerolog.ErrorLevel, level == zerolog.WarnLevel && j.begun, len(j.lines) >= fullLog:
		return len(line), j.write()
	case !j.waits:
		j.waits = true
		time.AfterFunc(delay, j.flush)
	}
	return len(line), nil
}

// Write implements io.Writer, for a line without a level.
func (j *jsonLog) Write(line []byte) (int, error) { return j.WriteLevel(zerolog.NoLevel, line) }

// begin writes the first line, before what waits.
func (j *jsonLog) begin(first []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines, j.begun = append(first, j.lines...), true
	_ = j.write()
}

// flush writes what waits.
func (j *jsonLog) flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.write() // Nobody is left to tell.
}

// write writes what waits. The lock is held.
func (j *jsonLog) write() error {
	j.waits = false
	if len(j.lines) == 0 {
		return nil
	}
	_, err := j.out.Write(j.lines)
	j.lines = j.lines[:0]
	return err
}

// newLog makes the program's own log. Its level is zerolog's global one, which a reload may change. It is gathered if it
// is JSON: who ends the program flushes it.
func newLog(c config.Log, w io.Writer) (zerolog.Logger, *jsonLog) {
	zerolog.SetGlobalLevel(app.LogLevel(c))
	if c.Format == config.FormatConsole || c.Format == config.FormatAuto && isTerminal(w) {
		return logTo(console(w)), nil
	}
	lines := &jsonLog{out: w}
	return logTo(lines), lines
}

// quietLog is the log of a program that is part of a command. Only warnings are added to the command's own words, as
// text unless JSON is asked for.
func quietLog(c config.Log, w io.Writer) zerolog.Logger {
	if c.Format != config.FormatJSON {
		w = console(w)
	}
	return logTo(w).Level(max(app.LogLevel(c), zerolog.WarnLevel))
}

func console(w io.Writer) io.Writer {
	return zerolog.ConsoleWriter{Out: w, NoColor: !isTerminal(w), TimeFormat: time.RFC3339}
}

func logTo(w io.Writer) zerolog.Logger { return zerolog.New(w).With().Timestamp().Logger() }
