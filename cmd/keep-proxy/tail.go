package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
)

// newTail makes the command that shows requests as they end.
func newTail() *cobra.Command {
	var s showFlags
	var filters []string
	cmd := &cobra.Command{
		Use:   "tail [--filter NAME=VALUE]…",
		Short: "Show requests as the proxy answers them",
		Long: "Follows a running proxy until Ctrl-C. Filters are method, host, status (404 or 4xx), effect, problem (a\n" +
			"name, or any), workflow, item, run, connector and operation. All that are given must fit. Nothing is kept:\n" +
			"what came before is in the proxy's log.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			wants, err := parseFilters(filters)
			if err != nil {
				return err
			}
			conn, err := s.reach(cmd)
			if err != nil {
				return err
			}
			return errors.Join(follow(cmd, conn, wants, s.json), conn.Close())
		},
	}
	s.bind(cmd)
	cmd.Flags().StringArrayVar(&filters, "filter", nil, "only requests with this value, as NAME=VALUE; may be repeated")
	return cmd
}

func parseFilters(filters []string) (map[string]string, error) {
	wants := map[string]string{}
	for _, f := range filters {
		name, value, ok := strings.Cut(f, "=")
		if _, twice := wants[name]; !ok || value == "" || twice {
			return nil, usage("tail: --filter %s: write NAME=VALUE, each name once", f)
		}
		wants[name] = value
	}
	return wants, nil
}

func follow(cmd *cobra.Command, conn *connection, wants map[string]string, asJSON bool) error {
	out := cmd.OutOrStdout()
	begun := func() {
		if !asJSON {
			fmt.Fprintln(cmd.ErrOrStderr(), "following; Ctrl-C ends it")
		}
	}
	err := conn.Requests(cmd.Context(), wants, begun, func(r wire.Served) error {
		if !asJSON {
			return writeRequest(out, r)
		}
		line, err := json.Marshal(r, json.Deterministic(true))
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		return err
	})
	if errors.Is(err, context.Canceled) {
		return nil // Ctrl-C is how one stops looking.
	}
	return err
}

// writeRequest writes a request in a line.
func writeRequest(w io.Writer, r wire.Served) error {
	if r.Missed > 0 {
		fmt.Fprintf(w, "… %s not shown: they came too fast\n", counted(int(r.Missed), "request"))
	}
	what := r.Effect
	if r.Operation != "" {
		what = r.Connector + "." + r.Operation
	}
	if r.Mutation != "" {
		what += " " + r.Mutation + " " + r.Decision + " → " + r.State
	}
	if r.Problem != "" {
		what += " refused: " + r.Problem
	}
	if r.Detail != "" {
		what += ": " + r.Detail
	}
	if r.Upgrade != "" {
		what += " " + r.Upgrade + " ended by " + r.Ended
	}
	if !r.Delivered {
		what += " (not delivered)"
	}
	scope := r.Workflow
	if r.Item != "" {
		scope += "/" + r.Item
	}
	where := r.Host + r.Path
	if where == "" {
		where = "from " + r.Client
	}
	_, err := fmt.Fprintf(w, "%s %3d %7s %-6s %s  %s  [%s]\n", r.At.Local().Format("15:04:05.000"), r.Status,
		time.Duration(r.Duration).Round(100*time.Microsecond), printable(r.Method), clip(where, 80), printable(what), clip(scope, 40))
	return err
}
