package main

import (
	"cmp"
	"context"
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
	cmd := listing("List mutations, newest first", mutationColumns, &f, (*client.Client).Mutations)
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

var mutationColumns = columns[wire.Mutation]{"ID\tSTATE\tOPERATION\tWORKFLOW\tITEM\tUPDATED\tTARGET", func(m wire.Mutation) []string {
	return []string{
		m.ID, stateWord(&m), m.Connector + "." + m.Operation, clip(m.Workflow, 24), clip(m.Item, 24), age(m.UpdatedAt), clip(m.Target, 70),
	}
}}

// stateWord is a mutation's state with what people should notice about it.
func stateWord(m *wire.Mutation) string {
	switch {
	case m.Undo != nil && m.State == "failed" && !m.NextTryAt.IsZero():
		return "owed until " + stamp(m.NextTryAt)
	case m.Undo != nil && m.State == "failed":
		return "owed"
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
	cmd := &cobra.Command{Use: "show ID", Short: "Show a mutation with its sendings, evidence and history", Args: cobra.ExactArgs(1)}
	return asking(cmd, func(ctx context.Context, c *connection, args []string) (*wire.Mutation, error) {
		return c.Mutation(ctx, args[0])
	}, showMutation)
}

// showMutation shows a mutation with what is asked about it.
func showMutation(p *page, m *wire.Mutation) {
	undoes := ""
	if m.Undo != nil {
		undoes = m.Undo.Object + " of " + m.Undo.Mutation
	}
	p.facts(
		"mutation", m.ID,
		"state", stateWord(m),
		"what", m.Target,
		"operation", m.Connector+"."+m.Operation+" (version "+strconv.Itoa(m.ConnectorVersion)+")",
		"account", m.Account,
		"scope", m.Workflow+" / "+m.Item+" / attempt "+strconv.Itoa(m.Attempt),
		"run", m.Run,
		"undoes", undoes,
		"obligations", strings.Join(m.Obligations, ", "),
		"class", m.Class,
		"reason", m.Reason,
		"request", m.Request.Method+" "+m.Request.URL,
		"vendor key", m.VendorKey,
		"marker", map[bool]string{true: "left out: the request has no room for it"}[m.Unmarked],
		"key", m.Key,
		"next try", stamp(m.NextTryAt),
		"created", stamp(m.CreatedAt),
		"updated", stamp(m.UpdatedAt),
	)
	if r := m.Result; r != nil {
		size := int64(len(r.Body.Content))
		if r.Body.Missing != "" {
			size = r.Body.Size
		}
		p.sayf("\nResult: status %d, %d bytes, from %s", r.Status, size, r.Source)
	}
	if v := m.Verification; v != nil {
		p.sayf("\nVerified before a replay, %s: the world says %s (%s), %d times; acknowledged: %t",
			stamp(v.At), v.Said, printable(v.Reason), v.Count, v.Acknowledged)
	}
	showDiff(p, m.Diff)
	section(p, "Sendings", "STARTED\tENDED\tBYTES\tSTATUS\tVERDICT\tREASON", m.Dispatches, func(d wire.Dispatch) []string {
		return []string{stamp(d.StartedAt), stamp(d.EndedAt), bytesOf(d), statusWord(d.Status), d.Verdict, clip(d.Reason, 90)}
	})
	showObservations(p, m)
	showEvents(p, m)
	if m.Undo != nil && m.State == "failed" && m.NextTryAt.IsZero() {
		// The decisions on it are about leaving it.
		p.sayf("\nIt is owed, and sent once you say so: %s %s --reason 'WHY'", p.on("keep-proxy obligations run"), m.ID)
	}
	showCheck(p, m)
	if len(m.Actions) == 0 {
		return
	}
	p.sayf("\nA person may decide:")
	for _, a := range m.Actions {
		p.sayf("  %s %s %s --reason 'WHY'", p.on("keep-proxy resolve"), m.ID, actionFlag(a))
		p.sayf("      %s", p.on(onItem(m.Workflow, m.Item, printable(a.Consequence))))
	}
}

// showCheck shows what helps to decide, if something is to be decided.
func showCheck(p *page, m *wire.Mutation) {
	if m.CanVerify == nil {
		return
	}
	asked := ""
	if e := m.Escalation; e != nil && e.ClosedAt.IsZero() {
		asked = e.Why
	}
	p.sayf("")
	p.facts(
		"blocks", blocksWords(m.Blocks),
		"asked because", asked,
		"can be asked", verifyWords(*m.CanVerify, m.CannotVerify),
		"check yourself", m.ManualCheck,
		"start again", m.ResumeHint,
	)
}

// blocksWords says what stands still, nothing for nothing.
func blocksWords(b *wire.Blocks) string {
	if b == nil {
		return ""
	}
	return b.Scope + " " + b.Name + " stands still"
}

// verifyWords says whether keep-proxy can ask the API.
func verifyWords(can bool, why string) string {
	if can {
		return "yes"
	}
	return "no: " + why
}

// showDiff shows how the refused payload differed, nothing for none.
func showDiff(p *page, d *wire.Diff) {
	if d == nil {
		return
	}
	var rows [][]string
	for _, c := range d.Changes {
		rows = append(rows, []string{clip(c.Place, 60), clip(cmp.Or(c.Stored, "-"), 60), clip(cmp.Or(c.Asked, "-"), 60), c.Weight})
	}
	if d.More {
		rows = append(rows, []string{"…", "and more", "", ""})
	}
	if len(rows) == 0 {
		p.sayf("\nAnother payload was asked for: %s", printable(d.Why))
	}
	section(p, "Another payload was asked for", "PLACE\tSTORED\tASKED\tCOUNTS AS", rows, cells)
}

// bytesOf is how many bytes were written. Only the end of a sending records it: before that nobody knows.
func bytesOf(d wire.Dispatch) string {
	if d.EndedAt.IsZero() {
		return "?"
	}
	return strconv.FormatInt(d.BytesWritten, 10)
}

// statusWord is a status, a dash for none.
func statusWord(status int) string {
	if status == 0 {
		return "-"
	}
	return strconv.Itoa(status)
}

// showObservations shows each lookup, and below it what was found, asked and answered.
func showObservations(p *page, m *wire.Mutation) {
	var rows [][]string
	for _, o := range m.Observations {
		seen := o.Seen
		switch {
		case o.Voided:
			seen += " (void)"
		case o.Counted:
			seen += " (counts)"
		}
		rows = append(rows, []string{stamp(o.At), o.Strategy, seen, clip(o.Reason, 160)})
		if len(o.Objects) > 0 {
			rows = append(rows, []string{"", "", "", "  found: " + clip(strings.Join(o.Objects, ", "), 200)})
		}
		for line := range strings.Lines(o.Evidence) {
			rows = append(rows, []string{"", "", "", "  " + clip(strings.TrimSuffix(line, "\n"), 200)})
		}
	}
	section(p, "What was looked up", "AT\tHOW\tSEEN\tREASON", rows, cells)
}

func showEvents(p *page, m *wire.Mutation) {
	var rows [][]string
	for i, e := range m.Events {
		if m.EventsLeftOut > 0 && i == len(m.Events)/2 {
			rows = append(rows, []string{"…", "", counted(m.EventsLeftOut, "event"), "", p.on("left out here; keep-proxy audit export has all")})
		}
		move := e.To
		if e.From != "" && e.From != e.To {
			move = e.From + " → " + e.To
		}
		rows = append(rows, []string{stamp(e.At), e.Actor, e.What, move, clip(e.Why, 80)})
	}
	section(p, "History", "AT\tWHO\tWHAT\tSTATE\tWHY", rows, cells)
}

// showEscalation shows an open question with all that a person needs to answer it.
func showEscalation(p *page, e wire.Escalation) {
	p.sayf("── %s ──", printable(e.Attempted))
	why := "why unknown"
	switch e.State {
	case "applied", "failed", "skipped":
		why = "what is known" // It can also be about a mutation whose outcome is known.
	}
	p.facts(
		"mutation", e.Mutation+" ("+e.State+", version "+strconv.FormatInt(e.Version, 10)+")",
		"operation", e.Connector+"."+e.Operation,
		"account", e.Account,
		"work", e.Workflow+" / "+e.Item+" / attempt "+strconv.Itoa(e.Attempt),
		"waiting", time.Duration(e.Waits).String(),
		"blocks", blocksWords(e.Blocks),
		"asked because", e.Asked,
		why, e.WhyUnknown,
		"looked up", e.Probed,
		"can be asked", verifyWords(e.CanVerify, e.CannotVerify),
		"check yourself", e.ManualCheck,
		"start again", e.ResumeHint,
	)
	showDiff(p, e.Diff)
	section(p, "Sendings", "STARTED\tENDED\tBYTES\tSTATUS\tERROR", e.Evidence, func(d wire.Dispatch) []string {
		return []string{stamp(d.StartedAt), stamp(d.EndedAt), bytesOf(d), statusWord(d.Status), clip(d.ErrorClass+" "+d.Error, 80)}
	})
}

// actions are what a person can decide: the API's name, in words, and the help of its flag.
var actions = []struct{ action, words, help string }{
	{wire.ActionCheckAgain, "check again", "ask the API again, from the beginning"},
	{wire.ActionDidNotHappen, "it did not happen", "it did not take effect; the next run sends it again"},
	{wire.ActionHappened, "it happened", "it took effect; needs --result or --no-result"},
	{wire.ActionSkip, "skip it for good", "go on without it, for good"},
	{wire.ActionAcceptPayload, "accept the payload", "the refused payload is covered by the stored result"},
	{wire.ActionAcknowledge, "acknowledge", "close the question; what else follows is said with it"},
	{wire.ActionNewKey, "send under a new vendor key", "send under a new vendor key; alone, or with --did-not-happen"},
}

// flagOf is the flag that chooses an action.
func flagOf(action string) string { return "--" + strings.ReplaceAll(action, "_", "-") }

// actionFlag is an action as it is typed.
func actionFlag(a wire.Action) string {
	flag := flagOf(a.Action)
	if a.NeedsForce {
		flag += " --force"
	}
	if a.Action == wire.ActionHappened {
		flag += " (--result FILE | --no-result)"
	}
	return flag
}

// actionLine is an action as a numbered choice shows it. The commands that it names get flags.
func actionLine(a wire.Action, flags string) string {
	title := a.Action
	for _, known := range actions {
		if known.action == a.Action {
			title = known.words
		}
	}
	return title + ": " + onSameLedger(flags, printable(a.Consequence))
}
