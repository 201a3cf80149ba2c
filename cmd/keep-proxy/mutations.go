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
)

// newMutations makes the commands that read mutations.
func newMutations() *cobra.Command {
	return group("mutations", "List and show mutations", newMutationsList(), newMutationsShow())
}

func newMutationsList() *cobra.Command {
	var f client.Filter
	cmd := listing("List mutations, newest first", mutationColumns,
		func(ctx context.Context, c *connection, filter client.Filter) (*wire.List[wire.Mutation], error) {
			filter.States, filter.Connector, filter.Operation, filter.Run = f.States, f.Connector, f.Operation, f.Run
			filter.Unresolved, filter.Escalated = f.Unresolved, f.Escalated
			return c.Mutations(ctx, filter)
		})
	flags := cmd.Flags()
	flags.StringSliceVar(&f.States, "state", nil, "only in these states")
	choices(cmd, "state", "in_flight", "applied", "failed", "needs_reconcile", "indeterminate", "skipped")
	flags.StringVar(&f.Connector, "connector", "", "only of this connector")
	flags.StringVar(&f.Operation, "operation", "", "only of this operation")
	flags.StringVar(&f.Run, "run", "", "only of this run")
	flags.BoolVar(&f.Unresolved, "unresolved", false, "only those whose outcome is unknown")
	flags.BoolVar(&f.Escalated, "escalated", false, "only those that ask a person")
	return cmd
}

var mutationColumns = columns[wire.Mutation]{
	[]string{"ID", "STATE", "OPERATION", "WORKFLOW", "ITEM", "UPDATED", "TARGET"},
	func(now time.Time, m *wire.Mutation) []string {
		return []string{
			m.ID, stateWord(m), m.Connector + "." + m.Operation, clip(m.Workflow, 24), clip(m.Item, 24), ago(now, m.UpdatedAt), clip(m.Target, 70),
		}
	},
}

// stateWord is a mutation's state with what people should notice about it.
func stateWord(m *wire.Mutation) string {
	switch {
	case m.Watching:
		return m.State + " (watching)"
	case m.Committed && m.State != "applied":
		return m.State + " (committed)"
	case m.State == "applied" && m.ResultState != "" && m.ResultState != "known":
		return m.State + " (result " + m.ResultState + ")"
	}
	return m.State
}

func newMutationsShow() *cobra.Command {
	var s showFlags
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a mutation with its sendings, evidence and history", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.with(cmd, func(ctx context.Context, c *connection) error {
				m, err := c.Mutation(ctx, args[0])
				if err != nil {
					return err
				}
				return output(cmd, s.json, m, func(w io.Writer, m *wire.Mutation) error {
					asked, err := askedAbout(ctx, c, m)
					if err != nil {
						return err
					}
					return showMutation(w, m, asked, again(cmd))
				})
			})
		},
	}
	s.bind(cmd)
	return cmd
}

// askedAbout is the open question about a mutation, nil for none.
func askedAbout(ctx context.Context, c *connection, m *wire.Mutation) (*wire.Escalation, error) {
	if len(m.Actions) == 0 {
		return nil, nil
	}
	f := client.Filter{Workflow: m.Workflow, Item: m.Item}
	for e, err := range all(&f.Cursor, func() (*wire.List[wire.Escalation], error) { return c.Escalations(ctx, f) }) {
		if err != nil || e.Mutation == m.ID {
			return e, err
		}
	}
	return nil, nil
}

// showMutation writes a mutation for a person, with what is asked about it, if anything is.
func showMutation(w io.Writer, m *wire.Mutation, asked *wire.Escalation, flags string) error {
	err := facts(w,
		"mutation", m.ID,
		"state", stateWord(m),
		"what", m.Target,
		"operation", m.Connector+"."+m.Operation+" (version "+strconv.Itoa(m.ConnectorVersion)+")",
		"account", m.Account,
		"scope", m.Workflow+" / "+m.Item+" / attempt "+strconv.Itoa(m.Attempt),
		"run", m.Run,
		"undoes", undoes(m.Undo),
		"obligations", strings.Join(m.Obligations, ", "),
		"class", m.Class,
		"reason", m.Reason,
		"request", m.Request.Method+" "+m.Request.URL,
		"vendor key", m.VendorKey,
		"key", m.Key,
		"next try", stamp(m.NextTryAt),
		"created", stamp(m.CreatedAt),
		"updated", stamp(m.UpdatedAt),
	)
	if err != nil {
		return err
	}
	if m.Result != nil {
		fmt.Fprintf(w, "\nResult: status %d, %d bytes, from %s\n", m.Result.Status, bodySize(m.Result.Body), m.Result.Source)
	}
	if v := m.Verification; v != nil {
		fmt.Fprintf(w, "\nVerified before a replay, %s: the world says %s (%s), %d times; acknowledged: %t\n",
			stamp(v.At), v.Said, printable(v.Reason), v.Count, v.Acknowledged)
	}
	for _, part := range []func(io.Writer, *wire.Mutation) error{
		func(w io.Writer, m *wire.Mutation) error { return showDiff(w, m.Diff) },
		showDispatches, showObservations,
		func(w io.Writer, m *wire.Mutation) error { return showEvents(w, m, flags) },
		func(w io.Writer, m *wire.Mutation) error { return showOwed(w, m, flags) },
		func(w io.Writer, m *wire.Mutation) error { return showActions(w, m, asked, flags) },
	} {
		if err := part(w, m); err != nil {
			return err
		}
	}
	return nil
}

// undoes names what a mutation takes back, nothing for none.
func undoes(u *wire.Undo) string {
	if u == nil {
		return ""
	}
	return u.Object + " of " + u.Mutation
}

// showDiff writes how the refused payload differed, nothing for none.
func showDiff(w io.Writer, d *wire.Diff) error {
	if d == nil {
		return nil
	}
	rows := make([][]string, 0, len(d.Changes)+1)
	for _, c := range d.Changes {
		rows = append(rows, []string{clip(c.Place, 60), clip(cmp.Or(c.Stored, "-"), 60), clip(cmp.Or(c.Asked, "-"), 60), c.Weight})
	}
	if d.More {
		rows = append(rows, []string{"…", "and more", "", ""})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(w, "\nAnother payload was asked for: %s\n", printable(d.Why))
		return err
	}
	return section(w, "Another payload was asked for", []string{"PLACE", "STORED", "ASKED", "COUNTS AS"}, rows)
}

func bodySize(b wire.Body) int64 {
	if b.Missing != "" {
		return b.Size
	}
	return int64(len(b.Content))
}

func showDispatches(w io.Writer, m *wire.Mutation) error {
	rows := make([][]string, 0, len(m.Dispatches))
	for _, d := range m.Dispatches {
		rows = append(rows, []string{
			stamp(d.StartedAt), stamp(d.EndedAt), bytesOf(d), statusWord(d.Status), d.Verdict, clip(d.Reason, 90),
		})
	}
	return section(w, "Sendings", []string{"STARTED", "ENDED", "BYTES", "STATUS", "VERDICT", "REASON"}, rows)
}

// bytesOf is how many bytes were written, a question mark where no end says it: that is
// recorded with the end alone, and a 0 would be read as nothing sent.
func bytesOf(d wire.Dispatch) string {
	if d.EndedAt.IsZero() {
		return "?"
	}
	return strconv.FormatInt(d.BytesWritten, 10)
}

// showObservations writes what was looked up: each try's conclusion, and below it what
// was found, asked and answered.
func showObservations(w io.Writer, m *wire.Mutation) error {
	rows := make([][]string, 0, len(m.Observations))
	for _, o := range m.Observations {
		rows = append(rows, []string{stamp(o.At), o.Strategy, seenWord(o), clip(o.Reason, 160)})
		if len(o.Objects) > 0 {
			rows = append(rows, []string{"", "", "", "  found: " + clip(strings.Join(o.Objects, ", "), 200)})
		}
		for line := range strings.Lines(o.Evidence) {
			rows = append(rows, []string{"", "", "", "  " + clip(strings.TrimSuffix(line, "\n"), 200)})
		}
	}
	return section(w, "What was looked up", []string{"AT", "HOW", "SEEN", "REASON"}, rows)
}

// seenWord is what was seen, and what that is worth.
func seenWord(o wire.Observation) string {
	switch {
	case o.Voided:
		return o.Seen + " (void)"
	case o.Counted:
		return o.Seen + " (counts)"
	}
	return o.Seen
}

func showEvents(w io.Writer, m *wire.Mutation, flags string) error {
	rows := make([][]string, 0, len(m.Events)+1)
	for i, e := range m.Events {
		if m.EventsLeftOut > 0 && i == len(m.Events)/2 {
			rows = append(rows, []string{"…", "", counted(m.EventsLeftOut, "event"), "", onSameLedger(flags, "left out here; keep-proxy audit export has all")})
		}
		move := e.To
		if e.From != "" && e.From != e.To {
			move = e.From + " → " + e.To
		}
		rows = append(rows, []string{stamp(e.At), e.Actor, e.What, move, clip(e.Why, 80)})
	}
	return section(w, "History", []string{"AT", "WHO", "WHAT", "STATE", "WHY"}, rows)
}

// showOwed says how an undo is sent that waits for a person's word: the decisions on its mutation
// are about leaving it.
func showOwed(w io.Writer, m *wire.Mutation, flags string) error {
	if m.Undo == nil || m.State != "failed" || !m.NextTryAt.IsZero() {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nIt is owed, and sent once you say so: %s %s --reason TEXT\n", onSameLedger(flags, "keep-proxy obligations run"), m.ID)
	return err
}

// showActions writes what a person may decide, and before that how to find out what is true.
func showActions(w io.Writer, m *wire.Mutation, asked *wire.Escalation, flags string) error {
	if len(m.Actions) == 0 {
		return nil
	}
	if asked != nil {
		fmt.Fprintln(w)
		if err := facts(w, "asked because", asked.Asked, "check yourself", asked.ManualCheck, "start again", asked.ResumeHint); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "\nA person may decide ("+onSameLedger(flags, "keep-proxy resolve")+" "+m.ID+" …):")
	return writeActions(w, m.Actions, flags)
}

// section writes a titled table, nothing for no rows.
func section(w io.Writer, title string, head []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	return table(w, head, rows)
}

// stamp writes a time for a person, in local time.
func stamp(t time.Time) string { return stampIn(t, time.Local) }

// stampIn writes a time with how far the zone is from UTC, since sentences of the API tell of the
// same moments in UTC, and so do most of the systems in which a person looks for them.
func stampIn(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format("2006-01-02 15:04:05.000Z07:00")
}
