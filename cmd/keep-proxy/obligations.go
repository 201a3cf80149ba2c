package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

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
	columns := columns[wire.Obligation]{
		[]string{"ID", "STANDING", "MUTATION", "ORDER", "OBJECT", "SENT", "UPDATED", "TARGET"},
		func(now time.Time, o *wire.Obligation) []string {
			return []string{
				o.ID, o.Standing, o.Mutation, strconv.Itoa(o.Order), clip(o.Object, 32), strconv.Itoa(o.Sent), ago(now, o.UpdatedAt), clip(o.Target, 70),
			}
		},
	}
	cmd := listing("List what is owed, newest first", columns,
		func(ctx context.Context, c *connection, filter client.Filter) (*wire.List[wire.Obligation], error) {
			filter.Connector, filter.All = f.Connector, f.All
			return c.Obligations(ctx, filter)
		})
	cmd.Flags().StringVar(&f.Connector, "connector", "", "only of this connector")
	cmd.Flags().BoolVar(&f.All, "all", false, "those that are met or waived, too")
	return cmd
}

// newObligationsDecide makes a command that decides on one obligation.
func newObligationsDecide(
	use, short string, decide func(*client.Client, context.Context, string, wire.DecideObligation) (*wire.Obligation, error),
) *cobra.Command {
	var s showFlags
	var d decider
	var version int64
	cmd := &cobra.Command{
		Use: use + " ID --reason TEXT", Short: short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return answer(&s, cmd, func(ctx context.Context, c *connection) (*wire.Obligation, error) {
				q := wire.DecideObligation{Reason: d.reason, Actor: d.actor, Version: version}
				o, err := decideObligation(ctx, c, args[0], q, decide)
				if err != nil {
					// What is open instead is said in flags of resolve, which this command doesn't have.
					return nil, fmt.Errorf("obligation %s: %w", args[0], err)
				}
				return o, nil
			}, func(w io.Writer, o *wire.Obligation) error {
				_, err := fmt.Fprintf(w, "%s is %s: %s\n", o.ID, o.Standing, printable(o.Target))
				return err
			})
		},
	}
	s.bind(cmd)
	d.bind(cmd, "why; it is kept with the record", "who decides")
	cmd.Flags().Int64Var(&version, "version", 0, "the version that was looked at (default the one it has now)")
	return cmd
}

// decideObligation decides on the version that the person named, else on the present one.
func decideObligation(
	ctx context.Context, c *connection, id string, d wire.DecideObligation,
	decide func(*client.Client, context.Context, string, wire.DecideObligation) (*wire.Obligation, error),
) (*wire.Obligation, error) {
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
