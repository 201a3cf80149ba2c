package main

import (
	"context"
	"encoding/csv"
	"errors"
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

// newRuns makes the commands that read and end runs.
func newRuns() *cobra.Command {
	return group("runs", "List, show and end runs", newRunsList(), newRunsShow(), newRunsEnd())
}

func newRunsList() *cobra.Command {
	var f client.Filter
	columns := columns[wire.Run]{"ID\tSTATE\tWORKFLOW\tITEM\tAGE\tREASON", func(r wire.Run) []string {
		return []string{r.ID, r.State, clip(r.Workflow, 24), clip(r.Item, 24), age(r.OpenedAt), clip(r.Reason, 70)}
	}}
	cmd := listing("List runs, newest first", columns, &f, (*client.Client).Runs)
	cmd.Flags().BoolVar(&f.Running, "running", false, "only those that have not ended")
	return cmd
}

func newRunsShow() *cobra.Command {
	var list *wire.List[wire.Mutation]
	cmd := &cobra.Command{Use: "show ID", Short: "Show a run and its mutations", Args: cobra.ExactArgs(1)}
	return asking(cmd, func(ctx context.Context, c *connection, args []string) (r *wire.Run, err error) {
		if r, err = c.Run(ctx, args[0]); err == nil && !asJSON(cmd) {
			list, err = c.Mutations(ctx, client.Filter{Run: r.ID})
		}
		return r, err
	}, func(p *page, r *wire.Run) {
		showRun(p, r)
		if list.Next != "" {
			cmd.PrintErrf("There is more: %s --run %s --cursor %s\n", p.on("keep-proxy mutations list"), r.ID, list.Next)
		}
		if len(list.Items) > 0 {
			p.sayf("")
			mutationColumns.table(p, list.Items)
		}
	})
}

func showRun(p *page, r *wire.Run) {
	p.facts(
		"run", r.ID,
		"state", r.State,
		"class", r.Class,
		"reason", r.Reason,
		"cause", r.Cause,
		"workflow", r.Workflow,
		"item", r.Item,
		"title", r.Title,
		"opened", stamp(r.OpenedAt),
		"ended", stamp(r.EndedAt),
		"expires", stamp(r.ExpiresAt),
		"resume", r.ResumeHint,
	)
}

func newRunsEnd() *cobra.Command {
	var d decider
	cmd := asking(&cobra.Command{Use: "end ID --reason TEXT", Short: "Abort a run", Args: cobra.ExactArgs(1)},
		func(ctx context.Context, c *connection, args []string) (*wire.Run, error) {
			return c.EndRun(ctx, args[0], wire.EndRun{Reason: d.reason, Actor: d.actor})
		}, showRun)
	d.bind(cmd, "why", "who ends it")
	return cmd
}

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
	var f client.Filter
	columns := columns[wire.Item]{"ID\tSTATE\tWORKFLOW\tITEM\tATTEMPT\tUPDATED\tRUN\tREASON", func(i wire.Item) []string {
		return []string{
			i.ID, i.State, clip(i.Workflow, 24), clip(i.Item, 32), strconv.Itoa(i.Attempt), age(i.UpdatedAt), i.ActiveRun, clip(i.Reason, 60),
		}
	}}
	cmd := listing("List items, newest first", columns, &f, (*client.Client).Items)
	cmd.Flags().StringSliceVar(&f.States, "state", nil, "only in these states")
	choices(cmd, "state", "open", "failed", "needs_attention", "done", "skipped")
	return cmd
}

// itemFlag lets a command name its item by workflow and name too. What it returns makes the item's id of the argument.
func itemFlag(cmd *cobra.Command) func(argument string) string {
	workflow := cmd.Flags().String("workflow", "", "take the argument as an item's name in this workflow, not as an id")
	return func(argument string) string {
		if *workflow == "" {
			return argument
		}
		return ledger.ItemID(*workflow, argument)
	}
}

func newItemsShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show (ID | --workflow W ITEM)", Short: "Show an item, attempt by attempt, with what a re-run would meet", Args: cobra.ExactArgs(1),
	}
	id := itemFlag(cmd)
	return asking(cmd, func(ctx context.Context, c *connection, args []string) (*wire.Item, error) {
		return c.Item(ctx, id(args[0]))
	}, showItem)
}

func showItem(p *page, i *wire.Item) {
	p.facts(
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
	for _, a := range i.Attempts {
		attempt := " of attempt " + strconv.Itoa(a.Attempt)
		section(p, "Runs"+attempt, "ID\tSTATE\tCLASS\tOPENED\tENDED\tREASON", a.Runs, func(r wire.ItemRun) []string {
			return []string{r.ID, r.State, r.Class, stamp(r.OpenedAt), stamp(r.EndedAt), clip(r.Reason, 70)}
		})
		section(p, "Mutations"+attempt, "ID\tSTATE\tOPERATION\tRUN\tA RE-RUN\tTARGET", a.Mutations, func(m wire.ItemMutation) []string {
			return []string{m.ID, m.State, m.Connector + "." + m.Operation, m.Run, rerunWords[m.Next], clip(m.Target, 60)}
		})
	}
	section(p, "Decisions", "AT\tWHO\tWHAT\tSTATE\tWHY", i.Changes, func(c wire.ItemChange) []string {
		return []string{stamp(c.At), c.Actor, c.What, c.From + " → " + c.To, clip(c.Why, 80)}
	})
}

// rerunWords say what a re-run that asks for a mutation meets.
var rerunWords = map[string]string{
	"replay":  "gets its answer",
	"send":    "sends it again",
	"wait":    "waits for it",
	"blocked": "is stopped by it",
	"refused": "is refused at it",
}

// decideItem decides on an item as it was seen.
type decideItem func(ctx context.Context, c *connection, seen *wire.Item, d wire.DecideItem) (*wire.Item, error)

// newItemsDecide makes the command of a decision on an item, on the version that it has now.
func newItemsDecide(use, short string, decide decideItem) *cobra.Command {
	var d decider
	name, flags, _ := strings.Cut(use, " ")
	use = strings.Join(strings.Fields(name+" (ID | --workflow W ITEM) "+flags+" --reason TEXT"), " ")
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}
	id := itemFlag(cmd)
	d.bind(cmd, "why; it is kept with the item", "who decides")
	return asking(cmd, func(ctx context.Context, c *connection, args []string) (*wire.Item, error) {
		seen, err := c.Item(ctx, id(args[0]))
		if err != nil {
			return nil, err
		}
		decided, err := decide(ctx, c, seen, wire.DecideItem{Reason: d.reason, Actor: d.actor, Version: seen.Version})
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", seen.ID, unsaid(err, "items show "+seen.ID))
		}
		return decided, nil
	}, showItem)
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

// newObligations makes the commands about what is owed.
func newObligations() *cobra.Command {
	return group("obligations", "List what is to be undone, and decide on it",
		newObligationsList(),
		newObligationsDecide("run", "Have an effect undone now, newer ones first", (*client.Client).RunObligation),
		newObligationsDecide("waive", "Let what would be undone stay", (*client.Client).WaiveObligation),
	)
}

func newObligationsList() *cobra.Command {
	var f client.Filter
	columns := columns[wire.Obligation]{"ID\tSTANDING\tMUTATION\tORDER\tOBJECT\tSENT\tUPDATED\tTARGET", func(o wire.Obligation) []string {
		standing := o.Standing
		if !o.NextTryAt.IsZero() {
			standing += " until " + stamp(o.NextTryAt)
		}
		return []string{
			o.ID, standing, o.Mutation, strconv.Itoa(o.Order), clip(o.Object, 32), strconv.Itoa(o.Sent), age(o.UpdatedAt), clip(o.Target, 70),
		}
	}}
	cmd := listing("List what is owed, newest first", columns, &f, (*client.Client).Obligations)
	cmd.Flags().StringVar(&f.Connector, "connector", "", "only of this connector")
	cmd.Flags().BoolVar(&f.All, "all", false, "those that are met or waived, too")
	return cmd
}

// decideObligation is one of the client's decisions on an obligation.
type decideObligation func(*client.Client, context.Context, string, wire.DecideObligation) (*wire.Obligation, error)

// newObligationsDecide makes a command that decides on one obligation.
func newObligationsDecide(use, short string, decide decideObligation) *cobra.Command {
	var d decider
	var version int64
	cmd := asking(&cobra.Command{Use: use + " ID --reason TEXT", Short: short, Args: cobra.ExactArgs(1)},
		func(ctx context.Context, c *connection, args []string) (*wire.Obligation, error) {
			o, err := decide.on(ctx, c, args[0], wire.DecideObligation{Reason: d.reason, Actor: d.actor, Version: version})
			if err != nil {
				// The API names what is open instead by flags of resolve, which this command doesn't have.
				return nil, fmt.Errorf("obligation %s: %w", args[0], err)
			}
			return o, nil
		}, func(p *page, o *wire.Obligation) { p.sayf("%s is %s: %s", o.ID, o.Standing, printable(o.Target)) })
	d.bind(cmd, "why; it is kept with the record", "who decides")
	cmd.Flags().Int64Var(&version, "version", 0, "the version that was looked at (default the one it has now)")
	return cmd
}

// on decides on the version that the person named, else on the present one.
func (decide decideObligation) on(ctx context.Context, c *connection, id string, d wire.DecideObligation) (*wire.Obligation, error) {
	if d.Version == 0 {
		m, err := c.Mutation(ctx, id)
		if err != nil {
			return nil, err
		}
		if m.Undo == nil {
			return nil, errors.New("it is no obligation; see keep-proxy obligations list")
		}
		id, d.Version = m.ID, m.Version
	}
	o, err := decide(c.Client, ctx, id, d)
	return o, unsaid(err, "mutations show "+id)
}

// newImpact makes the command that lists what a rule version, a time or a run touched.
func newImpact() *cobra.Command {
	var a adminFlags
	var filter client.Filter
	cmd := &cobra.Command{
		Use:   "impact (--connector C [--version V] | --since T [--until T] | --run R | --workflow W)",
		Short: "List what a rule version, a time or a run touched",
		Long: "Lists mutations with their items and results: what a wrong rule, a bad hour or a bad run touched.\n" +
			"A time selects what was made, sent, looked up or changed in it. Selections narrow each other.",
	}
	a.bind(jsonFlag(cmd))
	flags := cmd.Flags()
	flags.StringVar(&filter.Connector, "connector", "", "of this connector")
	flags.IntVar(&filter.Version, "version", 0, "made under this version of the connector's file")
	flags.StringVar(&filter.Run, "run", "", "made or sent by this run")
	flags.StringVar(&filter.Workflow, "workflow", "", "of this workflow")
	flags.StringVar(&filter.Since, "since", "", "touched since this time (2006-01-02T15:04:05Z), or so long ago (24h)")
	flags.StringVar(&filter.Until, "until", "", "touched until this time, or so long ago")
	asCSV := flags.Bool("csv", false, "as CSV, with a head")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case asJSON(cmd) && *asCSV:
			return usage("impact: --json and --csv exclude each other; give one of them")
		case filter.Connector+filter.Run+filter.Workflow+filter.Since+filter.Until == "" && filter.Version == 0:
			return usage("impact: nothing is asked about; give --connector, --run, --workflow, --since or --until")
		}
		return a.with(cmd, func(ctx context.Context, c *connection) error {
			list, err := c.Impact(ctx, filter)
			if err != nil {
				return err
			}
			items := map[string]bool{}
			for _, t := range list {
				items[t.ItemID] = true
			}
			cmd.PrintErrf("%s of %s\n", counted(len(list), "mutation"), counted(len(items), "item"))
			if *asCSV {
				return impactCSV(cmd.OutOrStdout(), list)
			}
			return show(cmd, wire.List[wire.Touched]{Items: list}, func(p *page, l wire.List[wire.Touched]) { touchedColumns.table(p, l.Items) })
		})
	}
	return cmd
}

var touchedColumns = columns[wire.Touched]{
	"WORKFLOW\tITEM\tITEM IS\tMUTATION\tSTATE\tRESULT\tOPERATION\tMADE\tTARGET", func(t wire.Touched) []string {
		return []string{
			clip(t.Workflow, 24), clip(t.Item, 32), t.ItemState, t.Mutation, t.State, statusWord(t.Status),
			fmt.Sprintf("%s.%s v%d", t.Connector, t.Operation, t.ConnectorVersion), stamp(t.CreatedAt), clip(t.Target, 50),
		}
	},
}

func impactCSV(w io.Writer, list []wire.Touched) error {
	c := csv.NewWriter(w)
	rows := [][]string{{
		"workflow", "item", "item_id", "attempt", "item_state", "mutation", "state", "connector", "connector_version", "operation",
		"account", "target", "run", "dispatches", "status", "result_state", "created_at", "updated_at",
	}}
	for _, t := range list {
		rows = append(rows, []string{
			t.Workflow, t.Item, t.ItemID, strconv.Itoa(t.Attempt), t.ItemState, t.Mutation, t.State, t.Connector,
			strconv.Itoa(t.ConnectorVersion), t.Operation, t.Account, t.Target, t.Run, strconv.Itoa(t.Dispatches),
			strconv.Itoa(t.Status), t.ResultState, t.CreatedAt.UTC().Format(time.RFC3339Nano), t.UpdatedAt.UTC().Format(time.RFC3339Nano),
		})
	}
	return c.WriteAll(rows)
}
