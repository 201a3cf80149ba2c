package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md from the commands")

// common is from how many commands on a flag is described once, before all of them.
const common = 6

// TestTheCommandLinePageHoldsEveryCommand compares docs/cli.md with the commands, or writes it with -update.
func TestTheCommandLinePageHoldsEveryCommand(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/cli.md", "<!-- begin commands -->\n", "<!-- end commands -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("%s has no part for the commands", path)
	}
	want := before + begin + "\n" + describedCommands() + end + after
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the commands say; run go test ./cmd/keep-proxy -run Page -update", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// describedCommands is a section for the flags of many commands, and one for each command that does something.
func describedCommands() string {
	var commands []*cobra.Command
	uses := map[string]int{}
	var gather func(*cobra.Command)
	gather = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.Hidden || sub.Name() == "completion" || sub.Name() == "help" {
				continue
			}
			if gather(sub); !sub.HasSubCommands() {
				commands = append(commands, sub)
				sub.LocalFlags().VisitAll(func(f *pflag.Flag) { uses[f.Name+f.Usage]++ })
			}
		}
	}
	gather(newRoot(streams{strings.NewReader(""), io.Discard, io.Discard}))
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	var sections strings.Builder
	for _, cmd := range commands {
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		var also []string
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			described := *f
			if f.Name == "actor" { // who runs this
				described.DefValue = ""
			}
			switch {
			case f.Name == "help":
			case uses[f.Name+f.Usage] >= common:
				if also = append(also, "`--"+f.Name+"`"); shared.Lookup(f.Name) == nil {
					shared.AddFlag(&described)
				}
			default:
				own.AddFlag(&described)
			}
		})
		says := cmd.Long
		if says == "" {
			says = cmd.Short + "."
		}
		fmt.Fprintf(&sections, "## %s\n\n```text\n%s\n\n%s\n", strings.TrimPrefix(cmd.CommandPath(), "keep-proxy "), cmd.UseLine(), says)
		if own.HasFlags() {
			fmt.Fprintf(&sections, "\n%s", own.FlagUsages())
		}
		sections.WriteString("```\n\n")
		if len(also) > 0 {
			fmt.Fprintf(&sections, "Also %s.\n\n", strings.Join(also, ", "))
		}
	}
	return "## Flags of many commands\n\n```text\n" + shared.FlagUsages() + "```\n\n" + sections.String()
}
