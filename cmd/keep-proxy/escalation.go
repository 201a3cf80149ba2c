package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"keep-proxy/admin/wire"
)

// writeEscalation writes an open question with all that a person needs to answer
// it.
func writeEscalation(w io.Writer, e wire.Escalation) error {
	fmt.Fprintf(w, "── %s ──\n", printable(e.Attempted))
	blocks := ""
	if e.Blocks != nil {
		blocks = e.Blocks.Scope + " " + e.Blocks.Name + " stands still"
	}
	canVerify := ""
	if !e.CanVerify {
		canVerify = "no: " + e.CannotVerify
	}
	err := facts(w,
		"mutation", e.Mutation+" ("+e.State+", version "+strconv.FormatInt(e.Version, 10)+")",
		"operation", e.Connector+"."+e.Operation,
		"account", e.Account,
		"work", e.Workflow+" / "+e.Item+" / attempt "+strconv.Itoa(e.Attempt),
		"waiting", time.Duration(e.Waits).String(),
		"blocks", blocks,
		"asked because", e.Asked,
		knowledge(e.State), e.WhyUnknown,
		"looked up", e.Probed,
		"can be asked", canVerify,
		"check yourself", e.ManualCheck,
		"start again", e.ResumeHint,
	)
	if err != nil {
		return err
	}
	if err := showDiff(w, e.Diff); err != nil {
		return err
	}
	rows := make([][]string, 0, len(e.Evidence))
	for _, d := range e.Evidence {
		rows = append(rows, []string{
			stamp(d.StartedAt), stamp(d.EndedAt), bytesOf(d), statusWord(d.Status), clip(d.ErrorClass+" "+d.Error, 80),
		})
	}
	return section(w, "Sendings", []string{"STARTED", "ENDED", "BYTES", "STATUS", "ERROR"}, rows)
}

// knowledge is what the account of the sendings is called: an escalation can also be
// about a mutation whose outcome is known.
func knowledge(state string) string {
	switch state {
	case "applied", "failed", "skipped":
		return "what is known"
	}
	return "why unknown"
}

// writeActions lists what may be decided, as flags of resolve. The commands that it names get flags.
func writeActions(w io.Writer, actions []wire.Action, flags string) error {
	for _, a := range actions {
		if _, err := fmt.Fprintf(w, "  %s\n      %s\n", actionFlag(a), onSameLedger(flags, printable(a.Consequence))); err != nil {
			return err
		}
	}
	return nil
}

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

// actionTitles are the actions in words.
var actionTitles = map[string]string{
	wire.ActionCheckAgain:    "check again",
	wire.ActionDidNotHappen:  "it did not happen",
	wire.ActionNewKey:        "send under a new vendor key",
	wire.ActionHappened:      "it happened",
	wire.ActionSkip:          "skip it for good",
	wire.ActionAcceptPayload: "accept the payload",
	wire.ActionAcknowledge:   "acknowledge",
}

// actionLine is an action as a numbered choice shows it. The commands that it names get flags.
func actionLine(a wire.Action, flags string) string {
	title := actionTitles[a.Action]
	if title == "" {
		title = a.Action
	}
	return title + ": " + onSameLedger(flags, printable(a.Consequence))
}
