package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
)

// newLedgerConfirm makes the command that ends what a restore or a loss holds up.
func newLedgerConfirm() *cobra.Command {
	var s showFlags
	var d decider
	var q wire.ConfirmGap
	cmd := &cobra.Command{
		Use:   "confirm (--workflow W [--item I] | --all) --reason TEXT",
		Short: "Say that you know what was done while the ledger knew nothing",
		Long: "After a restore or an accepted loss there is a time of which the ledger knows nothing. What may have been\n" +
			"sent in it is asked about before it is sent again, and items that a loss held wait. First find out in the\n" +
			"other systems what was done for a piece of work, and enter it where it is missing. Then confirm it: what\n" +
			"the ledger doesn't have counts as not done, and is sent.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Reason, q.Actor = d.reason, d.actor
			return answer(&s, cmd, func(ctx context.Context, c *connection) (*wire.GapConfirmed, error) {
				return c.ConfirmGap(ctx, q)
			}, func(w io.Writer, done *wire.GapConfirmed) error {
				return errors.Join(facts(w, "items let in", strconv.Itoa(done.Items)), showGaps(w, done.Gaps, again(cmd)))
			})
		},
	}
	s.bind(cmd)
	d.bind(cmd, "how you know", "who confirms")
	cmd.Flags().StringVar(&q.Workflow, "workflow", "", "confirm this workflow")
	cmd.Flags().StringVar(&q.Item, "item", "", "confirm only this item of the workflow")
	cmd.Flags().BoolVar(&q.All, "all", false, "confirm everything")
	return cmd
}

// showGaps lists the times of which the ledger knows nothing.
func showGaps(w io.Writer, gaps []wire.Gap, flags string) error {
	rows := make([][]string, 0, len(gaps))
	for _, g := range gaps {
		since := "unknown"
		if !g.Since.IsZero() {
			since = stamp(g.Since)
		}
		rows = append(rows, []string{g.Cause, since, stamp(g.Until), fmt.Sprint(len(g.Confirmed)), clip(g.Reason, 60)})
	}
	title := onSameLedger(flags, "The ledger knows nothing of (keep-proxy ledger confirm)")
	return section(w, title, []string{"CAUSE", "SINCE", "UNTIL", "CONFIRMED", "REASON"}, rows)
}
