package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// watchEvery is how often a listing is read again.
const watchEvery = 2 * time.Second

// clearScreen puts the cursor at the top and clears what is below (ECMA-48 CUP and ED).
const clearScreen = "\x1b[H\x1b[J"

// with connects and lists, with --watch until it is interrupted.
func (l *listFlags) with(cmd *cobra.Command, work func(context.Context, *connection) error) error {
	if !l.watch {
		return l.adminFlags.with(cmd, work)
	}
	return l.adminFlags.with(cmd, func(ctx context.Context, c *connection) error {
		if c.release != nil {
			return usage("%s: --watch needs a running proxy: it would hold the ledger of a stopped one", cmd.CommandPath())
		}
		out := cmd.OutOrStdout()
		defer cmd.SetOut(out)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		return watch(ctx, out, onTerminal(out), tick.C, func() (string, error) {
			var page bytes.Buffer
			cmd.SetOut(&page)
			err := work(ctx, c)
			return page.String(), err
		})
	})
}

// watch writes what read gives, again and again: on a terminal over what stood there,
// elsewhere whenever it has changed. It ends with ctx, or with what can't be read.
func watch(ctx context.Context, out io.Writer, terminal bool, tick <-chan time.Time, read func() (string, error)) error {
	shown, first := "", true
	for {
		page, err := read()
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil
		}
		if err != nil {
			return err
		}
		if terminal {
			page = clearScreen + page
		}
		if first || page != shown {
			if _, err := io.WriteString(out, page); err != nil {
				return err
			}
		}
		shown, first = page, false
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}

// onTerminal reports whether a person sees what is written.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
