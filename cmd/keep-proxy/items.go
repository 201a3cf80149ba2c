package main

import (
	"cmp"
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
		newItemsDecide("done", "Close an item: it can't produce new effects", closeItem),
		newItemsSkip(),
		newItemsDecide("reopen", "Let runs of an item in again; what is applied stays applied", reopenItem),
		newItemsNewAttempt(),
	)
}

func newItemsList() *cobra.Command {
	var l listFlags
	var states []string
	cmd := &cobra.Command{
		Use: "list", Short: "List items, newest first", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.with(cmd, func(ctx context.Context, c *connection) error {
				list, err := c.Items(ctx, client.ItemFilter{Filter: l.filter, States: states})
				if err != nil {
					return err
				}
				if l.json {
					return writeJSON(cmd.OutOrStdout(), list)
				}
				more(cmd, list.Next)
				return itemTable(cmd.OutOrStdout(), list.Items, time.Now())
			})
		},
	}
	l.bind(cmd)
	cmd.Flags().StringSliceVar(&states, "state", nil, "only in these states")
	choices(cmd, "state", "open", "failed", "needs_attention", "done", "skipped")
	return cmd
}

func itemTable(w io.Writer, list []wire.Item, now time.Time) error {
	rows := make([][]string, 0, len(list))
	for _, i := range list {
		rows = append(rows, []string{
			i.ID, i.State, clip(i.Workflow, 24), clip(i.Item, 32), strconv.Itoa(i.Attempt), ago(now, i.UpdatedAt), i.ActiveRun, clip(i.Reason, 60),
		})
	}
	return table(w, []string{"ID", "STATE", "WORKFLOW", "ITEM", "ATTEMPT", "UPDATED", "RUN", "REASON"}, rows)
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
			return f.with(cmd, func(ctx context.Context, c *connection) error {
				i, err := c.Item(ctx, f.id(args[0]))
				if err != nil {
					return err
				}
				return f.show(cmd, i)
			})
		},
	}
	f.bind(cmd)
	return cmd
}

// show writes the item as the flags say.
func (f *itemFlags) show(cmd *cobra.Command, i *wire.Item) error {
	if f.json {
		return writeJSON(cmd.OutOrStdout(), i)
	}
	return showItem(cmd.OutOrStdout(), i)
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

// decision is what every decision on an item needs.
type decision struct {
	itemFlags

	reason string
	actor  string
}

func (d *decision) bind(cmd *cobra.Command) {
	d.itemFlags.bind(cmd)
	cmd.Flags().StringVar(&d.reason, "reason", "", "why; it is kept with the item")
	cmd.Flags().StringVar(&d.actor, "actor", person(), "who decides")
}

// on reads the item and decides on what it says now.
func (d *decision) on(cmd *cobra.Command, argument string, decide func(context.Context, *connection, *wire.Item) (*wire.Item, error)) error {
	if d.reason == "" {
		return usage("items %s: --reason is missing; say why, it is kept with the item", cmd.Name())
	}
	return d.with(cmd, func(ctx context.Context, c *connection) error {
		seen, err := c.Item(ctx, d.id(argument))
		if err != nil {
			return err
		}
		decided, err := decide(ctx, c, seen)
		if err != nil {
			return fmt.Errorf("item %s: %w", seen.ID, unsaid(err, "items show "+seen.ID))
		}
		return d.show(cmd, decided)
	})
}

// newItemsDecide makes the command of a decision that has no flags of its own.
func newItemsDecide(
	name, short string, decide func(context.Context, *connection, *decision, *wire.Item) (*wire.Item, error),
) *cobra.Command {
	var d decision
	cmd := &cobra.Command{
		Use: name + " (ID | --workflow W ITEM) --reason TEXT", Short: short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.on(cmd, args[0], func(ctx context.Context, c *connection, seen *wire.Item) (*wire.Item, error) {
				return decide(ctx, c, &d, seen)
			})
		},
	}
	d.bind(cmd)
	return cmd
}

func closeItem(ctx context.Context, c *connection, d *decision, seen *wire.Item) (*wire.Item, error) {
	return c.CloseItem(ctx, seen.ID, wire.DecideItem{Reason: d.reason, Actor: d.actor, Version: seen.Version})
}

func reopenItem(ctx context.Context, c *connection, d *decision, seen *wire.Item) (*wire.Item, error) {
	return c.ReopenItem(ctx, seen.ID, wire.DecideItem{Reason: d.reason, Actor: d.actor, Version: seen.Version})
}

func newItemsNewAttempt() *cobra.Command {
	var d decision
	var attempt int
	cmd := &cobra.Command{
		Use:   "new-attempt (ID | --workflow W ITEM) [--attempt N] --reason TEXT",
		Short: "Begin an item anew: all of its work is done once more",
		Long: "Ends the item's attempt and begins the next. In it all of the item's work is done once more. Saying it twice\n" +
			"begins two attempts. With --attempt it ends only the attempt that you looked at.",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("attempt") && attempt < 1 {
				return usage("items new-attempt: --attempt %d: attempts count from 1; name the one that ends", attempt)
			}
			return d.on(cmd, args[0], func(ctx context.Context, c *connection, seen *wire.Item) (*wire.Item, error) {
				return c.NewAttempt(ctx, seen.ID, wire.NewAttempt{
					Reason: d.reason, Actor: d.actor, Version: seen.Version, Attempt: cmp.Or(attempt, seen.Attempt),
				})
			})
		},
	}
	d.bind(cmd)
	cmd.Flags().IntVar(&attempt, "attempt", 0, "the attempt that ends, as you saw it (default the one that it is at now)")
	return cmd
}

func newItemsSkip() *cobra.Command {
	var d decision
	var mutations bool
	cmd := &cobra.Command{
		Use: "skip (ID | --workflow W ITEM) --reason TEXT", Short: "Leave out what is left of an item", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.on(cmd, args[0], func(ctx context.Context, c *connection, seen *wire.Item) (*wire.Item, error) {
				return c.SkipItem(ctx, seen.ID, wire.SkipItem{
					Reason: d.reason, Actor: d.actor, Version: seen.Version, WithMutations: mutations,
				})
			})
		},
	}
	d.bind(cmd)
	cmd.Flags().BoolVar(&mutations, "with-mutations", false, "skip those of its mutations that are unknown or failed, too")
	return cmd
}
