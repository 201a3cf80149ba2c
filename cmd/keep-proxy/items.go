package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// newItems makes the commands that read items and decide on them.
func newItems() *cobra.Command {
	return group("items", "List and show items, and decide on them",
		newItemsList(), newItemsShow(),
		newItemsDecide("done", "Close an item: it can't produce new effects",
			func(ctx context.Context, c *connection, seen *wire.Item, d wire.DecideItem) (*wire.Item, error) {
				return c.CloseItem(ctx, seen.ID, d)
			}),
		newItemsSkip(),
		newItemsDecide("reopen", "Let runs of an item in again; what is applied stays applied",
			func(ctx context.Context, c *connection, seen *wire.Item, d wire.DecideItem) (*wire.Item, error) {
				return c.ReopenItem(ctx, seen.ID, d)
			}),
		newItemsNewAttempt(),
	)
}

func newItemsList() *cobra.Command {
	var states []string
	columns := columns[wire.Item]{
		[]string{"ID", "STATE", "WORKFLOW", "ITEM", "ATTEMPT", "UPDATED", "RUN", "REASON"},
		func(now time.Time, i *wire.Item) []string {
			return []string{
				i.ID, i.State, clip(i.Workflow, 24), clip(i.Item, 32), strconv.Itoa(i.Attempt), ago(now, i.UpdatedAt), i.ActiveRun, clip(i.Reason, 60),
			}
		},
	}
	cmd := listing("List items, newest first", columns, func(ctx context.Context, c *connection, f client.Filter) (*wire.List[wire.Item], error) {
		f.States = states
		return c.Items(ctx, f)
	})
	cmd.Flags().StringSliceVar(&states, "state", nil, "only in these states")
	choices(cmd, "state", "open", "failed", "needs_attention", "done", "skipped")
	return cmd
}

// itemFlags name one item: by its id, or by its workflow and name.
type itemFlags struct {
	showFlags

	workflow string
}

func (f *itemFlags) bind(cmd *cobra.Command) {
	f.showFlags.bind(cmd)
	cmd.Flags().StringVar(&f.workflow, "workflow", "", "take the argument as an item's name in this workflow, not as an id")
}

// id is the id of the item that the argument names.
func (f *itemFlags) id(argument string) string {
	if f.workflow == "" {
		return argument
	}
	return ledger.ItemID(f.workflow, argument)
}

func newItemsShow() *cobra.Command {
	var f itemFlags
	cmd := &cobra.Command{
		Use: "show (ID | --workflow W ITEM)", Short: "Show an item, attempt by attempt, with what a re-run would meet",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return answer(&f.showFlags, cmd, func(ctx context.Context, c *connection) (*wire.Item, error) {
				return c.Item(ctx, f.id(args[0]))
			}, showItem)
		},
	}
	f.bind(cmd)
	return cmd
}

// showItem writes an item for a person.
func showItem(w io.Writer, i *wire.Item) error {
	err := facts(w,
		"item", i.ID,
		"state", i.State,
		"workflow", i.Workflow,
		"name", i.Item,
		"title", i.Title,
		"attempt", strconv.Itoa(i.Attempt),
		"reason", i.Reason,
		"cause", i.Cause,
		"running", i.ActiveRun,
		"opened", stamp(i.OpenedAt),
		"updated", stamp(i.UpdatedAt),
		"decisions", strings.ReplaceAll(strings.Join(i.Actions, ", "), "_", "-"), // as the commands are called
	)
	if err != nil {
		return err
	}
	for _, a := range i.Attempts {
		if err := showAttempt(w, a); err != nil {
			return err
		}
	}
	rows := make([][]string, 0, len(i.Changes))
	for _, c := range i.Changes {
		rows = append(rows, []string{stamp(c.At), c.Actor, c.What, c.From + " → " + c.To, clip(c.Why, 80)})
	}
	return section(w, "Decisions", []string{"AT", "WHO", "WHAT", "STATE", "WHY"}, rows)
}

func showAttempt(w io.Writer, a wire.ItemAttempt) error {
	rows := make([][]string, 0, len(a.Runs))
	for _, r := range a.Runs {
		rows = append(rows, []string{r.ID, r.State, r.Class, stamp(r.OpenedAt), stamp(r.EndedAt), clip(r.Reason, 70)})
	}
	title := "Runs of attempt " + strconv.Itoa(a.Attempt)
	if err := section(w, title, []string{"ID", "STATE", "CLASS", "OPENED", "ENDED", "REASON"}, rows); err != nil {
		return err
	}
	rows = rows[:0]
	for _, m := range a.Mutations {
		rows = append(rows, []string{m.ID, m.State, m.Connector + "." + m.Operation, m.Run, rerunWords[m.Next], clip(m.Target, 60)})
	}
	title = "Mutations of attempt " + strconv.Itoa(a.Attempt)
	return section(w, title, []string{"ID", "STATE", "OPERATION", "RUN", "A RE-RUN", "TARGET"}, rows)
}

// rerunWords say what a re-run that asks for a mutation meets.
var rerunWords = map[string]string{
	"replay":  "gets its answer",
	"send":    "sends it again",
	"wait":    "waits for it",
	"blocked": "is stopped by it",
	"refused": "is refused at it",
}

// newItemsDecide makes the command of a decision on an item, on the version that it has now.
func newItemsDecide(
	use, short string, decide func(context.Context, *connection, *wire.Item, wire.DecideItem) (*wire.Item, error),
) *cobra.Command {
	var f itemFlags
	var d decider
	name, flags, _ := strings.Cut(use, " ")
	cmd := &cobra.Command{
		Use: strings.Join(strings.Fields(name+" (ID | --workflow W ITEM) "+flags+" --reason TEXT"), " "), Short: short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return answer(&f.showFlags, cmd, func(ctx context.Context, c *connection) (*wire.Item, error) {
				seen, err := c.Item(ctx, f.id(args[0]))
				if err != nil {
					return nil, err
				}
				decided, err := decide(ctx, c, seen, wire.DecideItem{Reason: d.reason, Actor: d.actor, Version: seen.Version})
				if err != nil {
					return nil, fmt.Errorf("item %s: %w", seen.ID, unsaid(err, "items show "+seen.ID))
				}
				return decided, nil
			}, showItem)
		},
	}
	f.bind(cmd)
	d.bind(cmd, "why; it is kept with the item", "who decides")
	return cmd
}

func newItemsNewAttempt() *cobra.Command {
	var cmd *cobra.Command
	var attempt int
	cmd = newItemsDecide("new-attempt [--attempt N]", "Begin an item anew: all of its work is done once more",
		func(ctx context.Context, c *connection, seen *wire.Item, d wire.DecideItem) (*wire.Item, error) {
			if !cmd.Flags().Changed("attempt") {
				attempt = seen.Attempt
			}
			return c.NewAttempt(ctx, seen.ID, wire.NewAttempt{DecideItem: d, Attempt: attempt})
		})
	cmd.Long = "Ends the item's attempt and begins the next. In it all of the item's work is done once more. Saying it twice\n" +
		"begins two attempts. With --attempt it ends only the attempt that you looked at."
	cmd.Flags().IntVar(&attempt, "attempt", 0, "the attempt that ends, as you saw it (default the one that it is at now)")
	return cmd
}

func newItemsSkip() *cobra.Command {
	var mutations bool
	cmd := newItemsDecide("skip", "Leave out what is left of an item",
		func(ctx context.Context, c *connection, seen *wire.Item, d wire.DecideItem) (*wire.Item, error) {
			return c.SkipItem(ctx, seen.ID, wire.SkipItem{DecideItem: d, WithMutations: mutations})
		})
	cmd.Flags().BoolVar(&mutations, "with-mutations", false, "skip those of its mutations that are unknown or failed, too")
	return cmd
}
