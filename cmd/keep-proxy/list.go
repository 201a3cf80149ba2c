package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// defaultLimit is how many records a listing shows.
const defaultLimit = 50

// listFlags are what listings have in common.
type listFlags struct {
	showFlags

	watch  bool
	filter client.Filter
}

func (l *listFlags) bind(cmd *cobra.Command) {
	l.showFlags.bind(cmd)
	f := cmd.Flags()
	f.BoolVar(&l.watch, "watch", false, "read again every 2 s, until Ctrl-C; off a terminal only what has changed is written")
	f.StringVar(&l.filter.Workflow, "workflow", "", "only of this workflow")
	f.StringVar(&l.filter.Item, "item", "", "only of this item")
	f.IntVar(&l.filter.Limit, "limit", defaultLimit, "at most so many, up to 1000")
	f.StringVar(&l.filter.Cursor, "cursor", "", "go on where an earlier listing ended")
}

// columns are a table of records: its head, and what a record has in each column.
type columns[T any] struct {
	head []string
	row  func(now time.Time, r *T) []string
}

func (c columns[T]) write(w io.Writer, list []T) error {
	rows := make([][]string, 0, len(list))
	for i := range list {
		rows = append(rows, c.row(time.Now(), &list[i]))
	}
	return table(w, c.head, rows)
}

// listing makes the command that lists records of one kind.
func listing[T any](short string, c columns[T], read func(context.Context, *connection, client.Filter) (*wire.List[T], error)) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use: "list", Short: short, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.with(cmd, func(ctx context.Context, conn *connection) error {
				list, err := read(ctx, conn, l.filter)
				if err != nil {
					return err
				}
				return output(cmd, l.json, list, func(w io.Writer, list *wire.List[T]) error {
					if list.Next != "" {
						cmd.PrintErrf("There is more: add --cursor %s\n", list.Next)
					}
					return c.write(w, list.Items)
				})
			})
		},
	}
	l.bind(cmd)
	return cmd
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

// showFlags are the flags of commands that ask the API and show its answer.
type showFlags struct {
	adminFlags

	json bool
}

func (s *showFlags) bind(cmd *cobra.Command) {
	s.adminFlags.bind(cmd)
	cmd.Flags().BoolVar(&s.json, "json", false, "as JSON")
}

// answer asks, and writes what is answered as JSON, or for a person.
func answer[T any](s *showFlags, cmd *cobra.Command, ask func(context.Context, *connection) (T, error), write func(io.Writer, T) error) error {
	return s.with(cmd, func(ctx context.Context, c *connection) error {
		v, err := ask(ctx, c)
		if err != nil {
			return badFlags(cmd, err)
		}
		return output(cmd, s.json, v, write)
	})
}

// output writes v as JSON, or for a person.
func output[T any](cmd *cobra.Command, asJSON bool, v T, write func(io.Writer, T) error) error {
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), v)
	}
	return write(cmd.OutOrStdout(), v)
}

// decider are the flags by which a person says what they decide for, and who they are.
type decider struct{ reason, actor string }

// bind adds the flags. Without a reason the command refuses before it opens anything.
func (d *decider) bind(cmd *cobra.Command, reason, actor string) {
	cmd.Flags().StringVar(&d.reason, "reason", "", reason)
	cmd.Flags().StringVar(&d.actor, "actor", person(), actor)
	cmd.PreRunE = d.check
}

func (d *decider) check(cmd *cobra.Command, _ []string) error {
	if d.reason != "" {
		return nil
	}
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return usage("%s: --reason is missing; say why, for whoever reads the history", name)
}

// badFlags makes a refusal an error of the command line if flags are all that is wrong.
func badFlags(cmd *cobra.Command, err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || len(p.Errors) == 0 {
		return err
	}
	for _, f := range p.Errors {
		if !strings.HasPrefix(flagFor(cmd, f.Where), "--") {
			return err
		}
	}
	return &exitError{codeUsage, err}
}

// choices lets a shell complete a flag that takes one of a few words.
func choices(cmd *cobra.Command, flag string, words ...string) {
	fixed := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, fixed); err != nil {
		panic(err) // there is no such flag
	}
}
