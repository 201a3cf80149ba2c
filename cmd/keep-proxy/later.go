package main

import "github.com/spf13/cobra"

// laterCommands are commands of later versions, with what to use meanwhile. They
// are refused by name, so that nobody looks for a typing mistake.
var laterCommands = map[string]string{
	"import":  "docs/tutorial.md writes a connector, and check says what is missing",
	"schema":  "docs/connectors.md lists every key, and check names the nearest one",
	"suggest": "tail --json shows the requests that no rule matched",
}

// newLater makes the hidden commands that refuse.
func newLater() []*cobra.Command {
	var commands []*cobra.Command
	for name, meanwhile := range laterCommands {
		commands = append(commands, &cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return usage("%s is not yet built; meanwhile: %s", name, meanwhile)
			},
		})
	}
	return commands
}
