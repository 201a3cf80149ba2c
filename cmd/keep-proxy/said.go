package main

import (
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// commandsFor replaces what the API's refusals name by commands and flags.
var commandsFor = strings.NewReplacer(
	"a new run does so with takeover", "a new run does so with --takeover",
	"leave attempt out", "leave --attempt out",
	"goes with did_not_happen only", "goes with --did-not-happen only",
	"goes with happened only", "goes with --happened only",
	"goes with compensate only", "goes with --compensate only",
	"no_result: true", "--no-result", "all: true", "--all",
	"No run was opened; try again later.", "Try again later.", // as openError says the first already
	"GET /v1/escalations", "keep-proxy resolve",
	"its actions in GET /v1/items/ID", "its decisions in keep-proxy items show",
	"GET /v1/items", "keep-proxy items list",
	"GET /v1/mutations with the run", "keep-proxy mutations list --run ID",
	"GET /v1/mutations", "keep-proxy mutations list",
	"GET /v1/obligations", "keep-proxy obligations list",
	"GET /v1/runs", "keep-proxy runs list",
	"GET /v1/status", "keep-proxy status",
)

// namedCommand matches the commands on a ledger that advice names. Nothing is added to a command with such flags of
// its own. Nothing is added to the name of a process that has the ledger open. Those of localCommand know no --admin.
var (
	namedCommand = regexp.MustCompile(`(?:\bby process \d+ \()?` +
		`\b(?:start (?:it|one) with keep-proxy serve|keep-proxy (?:audit export|check|health|pause|resolve|resume|status|tail|` +
		`ledger (?:accept-loss|backup|confirm|rebuild|verify)|items (?:done|new-attempt|reopen|skip)|obligations (?:run|waive)|runs end|` +
		`(?:items|mutations|obligations|runs) (?:list|show)))\b` +
		`(?: --(?:config|data-dir|admin)\b)?`)
	localCommand = regexp.MustCompile(`keep-proxy (?:check|serve|ledger (?:accept-loss|rebuild))$`)
)

// again is the flags by which another command finds the ledger of this one, with a space
// before each.
func again(cmd *cobra.Command) string {
	var flags strings.Builder
	for _, name := range []string{"config", "data-dir", "admin"} {
		if value := flagValue(cmd, name); value != "" {
			flags.WriteString(" --" + name + " " + quoted(value))
		}
	}
	return flags.String()
}

// onSameLedger gives the commands that a text names such flags: without them they would
// look elsewhere, and find nothing.
func onSameLedger(flags, text string) string {
	return namedCommand.ReplaceAllStringFunc(text, func(command string) string {
		if strings.Contains(command, " --") || strings.HasPrefix(command, "by process ") {
			return command
		}
		if strings.Contains(flags, " --admin ") && localCommand.MatchString(command) {
			return command
		}
		return command + flags
	})
}

// itemCommand matches the decisions on an item that advice names.
var itemCommand = regexp.MustCompile(`keep-proxy items (?:done|new-attempt|reopen|skip)\b`)

// onItem gives the decisions on an item that a text names what they need to be pasted.
func onItem(workflow, item, text string) string {
	if item == "" {
		return text
	}
	return itemCommand.ReplaceAllStringFunc(text, func(command string) string {
		return command + " --workflow " + quoted(workflow) + " " + quoted(item) + " --reason 'WHY'"
	})
}

// said is an error in the words of the command line. What the API refused is told by command and flag, with all of
// its faults. A refusal is one line, as it may quote what an API or a program said.
func said(cmd *cobra.Command, err error) string {
	text := err.Error()
	if p, ok := errors.AsType[*client.Problem](err); ok {
		told := commandsFor.Replace(p.Error())
		if len(p.Errors) > 0 {
			told = inFlags(cmd, p.Errors)
		}
		text = strings.Replace(text, p.Error(), printable(told), 1)
	}
	return onSameLedger(again(cmd), onItem(flagValue(cmd, "workflow"), flagValue(cmd, "item"), text))
}

// flagValue is the value of a flag; empty for none.
func flagValue(cmd *cobra.Command, name string) string {
	if cmd != nil {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
	}
	return ""
}

// inFlags tells faults by the flags in which they are.
func inFlags(cmd *cobra.Command, faults []wire.Fault) string {
	var texts []string
	for _, f := range faults {
		text := flagFor(cmd, f.Where) + ": " + f.What
		if f.How != "" {
			text += "; " + f.How
		}
		texts = append(texts, text)
	}
	return commandsFor.Replace(strings.Join(texts, "; "))
}

// flagFor is the flag by which a value of a request was given, else its bare name.
func flagFor(cmd *cobra.Command, where string) string {
	name := where
	for _, prefix := range []string{"/", "query:", "header:"} {
		name = strings.TrimPrefix(name, prefix)
	}
	flag := strings.ReplaceAll(name, "_", "-")
	if cmd != nil && cmd.Flags().Lookup(flag) != nil {
		return "--" + flag
	}
	return name
}
