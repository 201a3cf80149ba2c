package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// newObserved makes the commands about requests of no connector that were let through.
func newObserved() *cobra.Command {
	return group("observed", "Requests that proxy.unmatched.mutation: observe let through", newObservedExport())
}

func newObservedExport() *cobra.Command {
	var a adminFlags
	var run, host string
	cmd := &cobra.Command{
		Use:   "export [--run ID] [--host HOST]",
		Short: "Write draft cases for a connector file from observed requests",
		Long: "Writes a list of cases in YAML, one for each different request. Fill in expect, and mend what is masked.\n" +
			"Bodies are there for the hosts of proxy.observe.bodies.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, c *connection) error {
				out, known := cmd.OutOrStdout(), map[string]bool{}
				fmt.Fprintln(out, "cases:")
				return eachObserved(ctx, c, run, func(_ wire.Event, o rules.Observed) error {
					at, err := url.Parse(o.URL)
					if err != nil || host != "" && at.Host != host || known[o.String()] {
						return err
					}
					known[o.String()] = true
					text, err := json.Marshal(o, json.Deterministic(true)) // JSON is YAML.
					if err != nil {
						return err
					}
					_, err = fmt.Fprintf(out, "  - name: %q\n    request: %s\n    expect: {operation: NAME, identity: {}}\n", o.Method+" "+at.Path, text)
					return err
				})
			})
		},
	}
	a.bind(cmd)
	cmd.Flags().StringVar(&run, "run", "", "only of this run")
	cmd.Flags().StringVar(&host, "host", "", "only to this host, with its port unless that is the default")
	return cmd
}

// eachObserved calls each for every observed request of the history, or of one run.
func eachObserved(ctx context.Context, c *connection, run string, each func(wire.Event, rules.Observed) error) error {
	_, err := c.Audit(ctx, run, func(line []byte) error {
		var l wire.AuditLine
		if err := json.Unmarshal(line, &l); err != nil || l.Event == nil || l.Event.What != ledger.WhatObserved {
			return err
		}
		if o, err := rules.ReadObserved(l.Event.Evidence); err == nil {
			return each(*l.Event, o)
		}
		return nil // An older version kept the host alone.
	})
	return err
}

// listObserved shows the observed requests of the history.
func listObserved(ctx context.Context, cmd *cobra.Command, c *connection, run string) error {
	list := wire.List[wire.Event]{Items: []wire.Event{}}
	err := eachObserved(ctx, c, run, func(e wire.Event, _ rules.Observed) error {
		list.Items = append(list.Items, e)
		return nil
	})
	if err != nil {
		return err
	}
	return show(cmd, list, func(p *page, list wire.List[wire.Event]) {
		columns[wire.Event]{"AT\tRUN\tITEM\tREQUEST", func(e wire.Event) []string {
			o, _ := rules.ReadObserved(e.Evidence)
			return []string{stamp(e.At), e.Run, clip(e.Workflow+"/"+e.Item, 40), clip(o.Method+" "+o.URL, 120)}
		}}.table(p, list.Items)
	})
}
