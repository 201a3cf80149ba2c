package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

const (
	// defaultLimit is how many records a listing shows.
	defaultLimit = 50
	// watchEvery is how often a listing is read again.
	watchEvery = 2 * time.Second
	// clearScreen puts the cursor at the top and clears what is below (ECMA-48 CUP and ED).
	clearScreen = "\x1b[H\x1b[J"
)

// listing makes the command that lists records of one kind, of those that filter selects.
func listing[T any](
	short string, c columns[T], filter *client.Filter, read func(*client.Client, context.Context, client.Filter) (*wire.List[T], error),
) *cobra.Command {
	var a adminFlags
	cmd := &cobra.Command{Use: "list", Short: short}
	a.bind(jsonFlag(cmd))
	f := cmd.Flags()
	watched := f.Bool("watch", false, "read again every 2 s, until Ctrl-C; off a terminal only what has changed is written")
	f.StringVar(&filter.Workflow, "workflow", "", "only of this workflow")
	f.StringVar(&filter.Item, "item", "", "only of this item")
	f.IntVar(&filter.Limit, "limit", defaultLimit, "at most so many, up to 1000")
	f.StringVar(&filter.Cursor, "cursor", "", "go on where an earlier listing ended")
	once := func(ctx context.Context, conn *connection) error {
		list, err := read(conn.Client, ctx, *filter)
		if err != nil {
			return err
		}
		return show(cmd, list, func(p *page, list *wire.List[T]) {
			if list.Next != "" {
				cmd.PrintErrf("There is more: add --cursor %s\n", list.Next)
			}
			c.table(p, list.Items)
		})
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd, func(ctx context.Context, conn *connection) error {
			switch {
			case !*watched:
				return once(ctx, conn)
			case conn.release != nil:
				return usage("%s: --watch needs a running proxy: it would hold the ledger of a stopped one", cmd.CommandPath())
			}
			return watchCommand(ctx, cmd, func() error { return once(ctx, conn) })
		})
	}
	return cmd
}

// watchCommand shows again and again what a command writes.
func watchCommand(ctx context.Context, cmd *cobra.Command, work func() error) error {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	defer func() { cmd.SetOut(out); cmd.SetErr(errs) }()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	return watch(ctx, out, errs, isTerminal(out), tick.C, func() (page, note string, err error) {
		var listed, told bytes.Buffer
		cmd.SetOut(&listed)
		cmd.SetErr(&told)
		err = work()
		return listed.String(), told.String(), err
	})
}

// watch writes what read returns, again and again. On a terminal it writes over the page before, elsewhere only a
// changed page. A note, such as that there is more, comes after its page and stands as long. It ends with ctx, or
// with an error.
func watch(
	ctx context.Context, out, errs io.Writer, terminal bool, tick <-chan time.Time, read func() (page, note string, err error),
) error {
	shown, noted, first := "", "", true
	for {
		page, note, err := read()
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // A page that was read in part is none.
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

// all gives each record of a listing, page by page; cursor is that of the filter that read uses.
func all[T any](cursor *string, read func() (*wire.List[T], error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for {
			page, err := read()
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if *cursor = page.Next; *cursor == "" {
				return
			}
		}
	}
}

// collected is all of a listing.
func collected[T any](cursor *string, read func() (*wire.List[T], error)) ([]T, error) {
	list := []T{}
	for r, err := range all(cursor, read) {
		if err != nil {
			return nil, err
		}
		list = append(list, *r)
	}
	return list, nil
}
