package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressAfter is how long something may take before a person is told about it,
// and progressEvery how often.
const (
	progressAfter = time.Second
	progressEvery = 500 * time.Millisecond
)

// progress tells how far something is that takes long. On a terminal one line is
// written over and over; elsewhere lines follow each other.
type progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Time

	mu    sync.Mutex
	next  time.Time
	wrote bool
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, terminal: isTerminal(out), now: time.Now, next: time.Now().Add(progressAfter)}
}

// step tells how far it is, if it is time to; total is 0 if it isn't known.
func (p *progress) step(what string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
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

// counting counts what is written through it.
func (p *progress) counting(w io.Writer, what string) io.Writer {
	return &counter{w: w, p: p, what: what}
}

type counter struct {
	w    io.Writer
	p    *progress
	what string
	done int64
}

// Write writes and counts.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.done += int64(n)
	c.p.step(c.what, c.done, 0)
	return n, err
}
