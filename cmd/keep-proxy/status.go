package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
)

// newStatus makes the command that tells the state of the whole by its code.
func newStatus() *cobra.Command {
	var s showFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell whether anything is unknown or stopped",
		Long: "Exit codes:\n\n" +
			"  0   nothing is unknown\n" +
			"  1   something is unknown, and is being found out\n" +
			"  2   something waits for a person, no mutations are taken, or changed connectors aren't in force\n" +
			"  69  nothing could be asked",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			code := codeOK
			err := s.with(cmd, func(ctx context.Context, c *connection) error {
				st, err := c.Status(ctx)
				if err != nil {
					return err
				}
				code = statusCode(st)
				if s.json {
					return writeJSON(cmd.OutOrStdout(), st)
				}
				return showStatus(cmd.OutOrStdout(), st, time.Now(), again(cmd))
			})
			if err != nil {
				return &exitError{codeAbsent, err}
			}
			return quietly(code)
		},
	}
	s.bind(cmd)
	return cmd
}

// statusCode is the exit code that a status stands for.
func statusCode(s *wire.Status) int {
	switch {
	case !s.Healthy, s.NotReady != "", s.Escalated > 0, s.ItemsWaiting > 0, s.OwedByPerson > 0, len(s.Gaps) > 0, halted(s.Mode), reloadWords(s.Reload) != "":
		return codeEscalated
	}
	code := codeOK
	for _, stop := range s.Stopped {
		if stop.State == "indeterminate" {
			return codeEscalated
		}
	}
	if s.Unknown > 0 {
		code = codeUnknown
	}
	return code
}

// reloadWords says that the latest reload failed, nothing if it didn't.
func reloadWords(r *wire.LastReload) string {
	if r == nil || r.Error == "" {
		return ""
	}
	return "failed at " + stamp(r.At) + ", so the connectors from before are in force: " + printable(strings.ReplaceAll(r.Error, "\n", " | "))
}

// askedWords counts what waits for a person, and says where it is.
func askedWords(s *wire.Status) string {
	if s.Escalated == 0 {
		return "0"
	}
	return fmt.Sprintf("%d; see keep-proxy resolve", s.Escalated)
}

// waitingWords count the items that wait, nothing for none: most do with a question that is open.
func waitingWords(s *wire.Status) string {
	if s.ItemsWaiting == 0 {
		return ""
	}
	return fmt.Sprintf("%d; see keep-proxy items list --state needs_attention", s.ItemsWaiting)
}

// owedWords say what is to be taken back, nothing for nothing.
func owedWords(s *wire.Status) string {
	switch {
	case s.Owed == 0:
		return ""
	case s.OwedByPerson == 0:
		return fmt.Sprintf("%d, by itself; see keep-proxy obligations list", s.Owed)
	}
	return fmt.Sprintf("%d, of which %d by a person; see keep-proxy obligations list", s.Owed, s.OwedByPerson)
}

// showStatus writes the state of the whole. The commands that it names get flags, by which
// they find the same ledger.
func showStatus(w io.Writer, s *wire.Status, now time.Time, flags string) error {
	health := ""
	if !s.Healthy {
		health = "takes no records: " + s.Health
	}
	mode := ""
	if halted(s.Mode) {
		mode = modeWords(s.Mode, now) + "; " + onSameLedger(flags, "keep-proxy resume ends it")
	} else if s.NotReady != "" {
		health = "takes no mutations: " + s.NotReady
	}
	since := ""
	if !s.Since.IsZero() {
		since = stamp(s.Since) + " (" + ago(now, s.Since) + ")"
	}
	err := facts(w,
		"ledger", s.LedgerID,
		"health", health,
		"mode", mode,
		"reload", reloadWords(s.Reload),
		"unknown", fmt.Sprint(s.Unknown),
		"waiting for a person", onSameLedger(flags, askedWords(s)),
		"items that wait", onSameLedger(flags, waitingWords(s)),
		"to be taken back", onSameLedger(flags, owedWords(s)),
		"since", since,
	)
	if err != nil {
		return err
	}
	if err := showGaps(w, s.Gaps, flags); err != nil {
		return err
	}
	rows := make([][]string, 0, len(s.Stopped))
	for _, stop := range s.Stopped {
		rows = append(rows, []string{stop.Scope, clip(stop.Name, 50), stop.Mutation, stop.State, ago(now, stop.Since)})
	}
	if err := section(w, "Stopped", []string{"SCOPE", "NAME", "MUTATION", "STATE", "FOR"}, rows); err != nil {
		return err
	}
	rows = rows[:0]
	for _, d := range s.Destinations {
		if d.Waiting+d.Dropped == 0 && d.Error == "" {
			continue
		}
		rows = append(rows, []string{
			clip(d.Name, 30), strconv.Itoa(d.Waiting), strconv.Itoa(d.Dropped), strconv.Itoa(d.Tries), ago(now, d.Since), clip(d.Error, 70),
		})
	}
	return section(w, "Not notified", []string{"DESTINATION", "WAITING", "DROPPED", "TRIES", "FOR", "ERROR"}, rows)
}
