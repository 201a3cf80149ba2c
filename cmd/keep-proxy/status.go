package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// newStatus makes the command that tells the state of the whole by its code.
func newStatus() *cobra.Command {
	var a adminFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell whether anything is unknown or stopped",
		Long: "Exit codes:\n\n" +
			"  0   nothing is unknown\n" +
			"  1   something is unknown, and is being found out\n" +
			"  2   something waits for a person, no mutations are taken, or changed connectors aren't in force\n" +
			"  69  nothing could be asked",
		RunE: func(cmd *cobra.Command, _ []string) error {
			code := codeOK
			err := a.with(cmd, func(ctx context.Context, c *connection) error {
				st, err := c.Status(ctx)
				if err != nil {
					return err
				}
				code = statusCode(st)
				return show(cmd, st, func(p *page, st *wire.Status) { showStatus(p, st, time.Now()) })
			})
			if err != nil {
				return &exitError{code: codeAbsent, err: err}
			}
			return quietly(code)
		},
	}
	a.bind(jsonFlag(cmd))
	return cmd
}

// statusCode is the exit code that a status stands for.
func statusCode(s *wire.Status) int {
	switch {
	case !s.Healthy, s.NotReady != "", s.Escalated > 0, s.ItemsWaiting > 0, s.OwedByPerson > 0, len(s.Gaps) > 0, halted(s.Mode), reloadWords(s.Reload) != "":
		return codeEscalated
	}
	for _, stop := range s.Stopped {
		if stop.State == "indeterminate" {
			return codeEscalated
		}
	}
	if s.Unknown > 0 {
		return codeUnknown
	}
	return codeOK
}

// reloadWords says that the latest reload failed, nothing if it didn't.
func reloadWords(r *wire.LastReload) string {
	if r == nil || r.Error == "" {
		return ""
	}
	return "failed at " + stamp(r.At) + ", so the connectors from before are in force: " + printable(strings.ReplaceAll(r.Error, "\n", " | "))
}

// showStatus shows the state of the whole.
func showStatus(p *page, s *wire.Status, now time.Time) {
	var health, mode, items, owed, since string
	asked := strconv.Itoa(s.Escalated)
	if !s.Healthy {
		health = "takes no records: " + s.Health
	}
	if halted(s.Mode) {
		mode = modeWords(s.Mode, now) + "; " + p.on("keep-proxy resume ends it")
	} else if s.NotReady != "" {
		health = "takes no mutations: " + s.NotReady
	}
	if s.Escalated > 0 {
		asked += p.on("; see keep-proxy resolve")
	}
	if s.ItemsWaiting > 0 { // Most do with a question that is open.
		items = strconv.Itoa(s.ItemsWaiting) + p.on("; see keep-proxy items list") + " --state needs_attention"
	}
	switch {
	case s.OwedByPerson > 0:
		owed = fmt.Sprintf("%d, of which %d by a person", s.Owed, s.OwedByPerson) + p.on("; see keep-proxy obligations list")
	case s.Owed > 0:
		owed = strconv.Itoa(s.Owed) + ", by itself" + p.on("; see keep-proxy obligations list")
	}
	if !s.Since.IsZero() {
		since = stamp(s.Since) + " (" + ago(now, s.Since) + ")"
	}
	p.facts(
		"ledger", s.LedgerID,
		"health", health,
		"mode", mode,
		"reload", reloadWords(s.Reload),
		"unknown", strconv.Itoa(s.Unknown),
		"waiting for a person", asked,
		"items that wait", items,
		"to be taken back", owed,
		"since", since,
	)
	showGaps(p, s.Gaps)
	section(p, "Stopped", "SCOPE\tNAME\tMUTATION\tSTATE\tFOR\tLAST REASON", s.Stopped, func(stop wire.Stopped) []string {
		return []string{stop.Scope, clip(stop.Name, 50), stop.Mutation, stop.State, ago(now, stop.Since), clip(stop.Reason, 120)}
	})
	late := slices.DeleteFunc(slices.Clone(s.Destinations), func(d wire.Destination) bool { return d.Waiting+d.Dropped == 0 && d.Error == "" })
	section(p, "Not notified", "DESTINATION\tWAITING\tDROPPED\tTRIES\tFOR\tERROR", late, func(d wire.Destination) []string {
		return []string{
			clip(d.Name, 30), strconv.Itoa(d.Waiting), strconv.Itoa(d.Dropped), strconv.Itoa(d.Tries), ago(now, d.Since), clip(d.Error, 70),
		}
	})
}

// newModes makes pause, drain and resume.
func newModes() []*cobra.Command {
	return []*cobra.Command{
		newMode((*client.Client).Pause, &cobra.Command{
			Use: "pause --reason TEXT", Short: "Send no mutation until resume",
			Long: "Keeps mutations back: they get 503 draining, and may be tried again. Stored answers and reads go on. No run\n" +
				"is opened, and no outcome is asked about. It holds after a restart too. What was being sent ends: once no\n" +
				"mutations and no tries are under way, nothing is sent.",
		}),
		newMode((*client.Client).Drain, &cobra.Command{
			Use: "drain --reason TEXT", Short: "Take no requests, and let those under way end",
			Long: "Keeps every new request back with 503 draining, reads too, until resume or a restart. Once no requests and\n" +
				"no tries are under way, the proxy can be stopped, and no answer is cut.",
		}),
		newMode((*client.Client).Resume, &cobra.Command{Use: "resume --reason TEXT", Short: "End a pause, or draining"}),
	}
}

// newMode makes a command that tells the proxy whether to work.
func newMode(set func(*client.Client, context.Context, wire.SetMode) (*wire.Mode, error), cmd *cobra.Command) *cobra.Command {
	var d decider
	d.bind(cmd, "why; kept in the history, and told to whoever is refused", "who says so")
	return asking(cmd, func(ctx context.Context, c *connection, _ []string) (*wire.Mode, error) {
		if cmd.Name() == "drain" && c.release != nil { // It ends with the proxy.
			return nil, usage("drain: no proxy runs for %s, so nothing is under way; keep-proxy pause holds for the next one", c.config.Ledger.Dir)
		}
		return set(c.Client, ctx, wire.SetMode{Reason: d.reason, Actor: d.actor})
	}, func(p *page, m *wire.Mode) {
		p.facts(
			"mode", modeWords(m, time.Now()),
			"requests under way", fmt.Sprint(m.Requests),
			"mutations under way", fmt.Sprint(m.Mutations),
			"tries under way", fmt.Sprint(m.Tries),
		)
	})
}

// modeWords says since when work is kept back, and why.
func modeWords(m *wire.Mode, now time.Time) string {
	if m.Since.IsZero() {
		return m.Mode
	}
	return fmt.Sprintf("%s since %s (%s) by %s: %s", m.Mode, stamp(m.Since), ago(now, m.Since), printable(m.Actor), printable(m.Reason))
}

// halted reports whether work is kept back.
func halted(m *wire.Mode) bool { return m != nil && m.Mode != wire.ModeServing }

// newTail makes the command that shows requests as they end.
func newTail() *cobra.Command {
	var a adminFlags
	var filters []string
	var observed bool
	var run string
	cmd := &cobra.Command{
		Use:   "tail [--filter NAME=VALUE]… | tail --observed [--run ID]",
		Short: "Show requests as the proxy answers them",
		Long: "Follows a running proxy until Ctrl-C. Filters are method, host, status (404 or 4xx), effect, problem (a\n" +
			"name, or any), workflow, item, run, connector and operation. All that are given must fit. Nothing is kept:\n" +
			"what came before is in the proxy's log.\n" +
			"With --observed it lists what proxy.unmatched.mutation: observe let through, from the ledger, and ends.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			wants, err := parseFilters(filters)
			if err != nil {
				return err
			}
			if observed {
				return a.with(cmd, func(ctx context.Context, c *connection) error { return listObserved(ctx, cmd, c, run) })
			}
			conn, err := a.reach(cmd)
			if err != nil {
				return err
			}
			return errors.Join(follow(cmd, conn, wants), conn.Close())
		},
	}
	a.bind(jsonFlag(cmd))
	cmd.Flags().StringArrayVar(&filters, "filter", nil, "only requests with this value, as NAME=VALUE; may be repeated")
	cmd.Flags().BoolVar(&observed, "observed", false, "list the observed requests that the ledger has kept")
	cmd.Flags().StringVar(&run, "run", "", "with --observed: only of this run")
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

func follow(cmd *cobra.Command, conn *connection, wants map[string]string) error {
	out := cmd.OutOrStdout()
	begun := func() {
		if !asJSON(cmd) {
			fmt.Fprintln(cmd.ErrOrStderr(), "following; Ctrl-C ends it")
		}
	}
	err := conn.Requests(cmd.Context(), wants, begun, func(r wire.Served) error {
		if !asJSON(cmd) {
			return writeRequest(out, r)
		}
		return writeLine(out, r)
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
