package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
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
		out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
		defer func() { cmd.SetOut(out); cmd.SetErr(errs) }()
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		return watch(ctx, out, errs, isTerminal(out), tick.C, func() (page, note string, err error) {
			var listed, told bytes.Buffer
			cmd.SetOut(&listed)
			cmd.SetErr(&told)
			err = work(ctx, c)
			return listed.String(), told.String(), err
		})
	})
}

// watch writes what read gives, again and again: on a terminal over what stood there,
// elsewhere whenever it has changed. What is told of a page, such as that it isn't all, comes
// after it, so that it stands as long as the page. It ends with ctx, or with what can't be read.
func watch(
	ctx context.Context, out, errs io.Writer, terminal bool, tick <-chan time.Time, read func() (page, note string, err error),
) error {
	shown, noted, first := "", "", true
	for {
		page, note, err := read()
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // What was read of a page is none.
		}
		if err != nil {
			return err
		}
		if terminal {
			page = clearScreen + page
		}
		if first || page != shown || note != noted {
			if _, err := io.WriteString(out, page); err != nil {
				return err
			}
			if _, err := io.WriteString(errs, note); err != nil {
				return err
			}
		}
		shown, noted, first = page, note, false
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}
