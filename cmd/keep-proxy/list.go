package main

import (
	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
)

// defaultLimit is how many records a listing shows.
const defaultLimit = 50

// listFlags are what listings have in common.
type listFlags struct {
	adminFlags

	json   bool
	watch  bool
	filter client.Filter
}

func (l *listFlags) bind(cmd *cobra.Command) {
	l.adminFlags.bind(cmd)
	f := cmd.Flags()
	f.BoolVar(&l.json, "json", false, "as JSON")
	f.BoolVar(&l.watch, "watch", false, "read again every 2 s, until Ctrl-C; off a terminal only what has changed is written")
	f.StringVar(&l.filter.Workflow, "workflow", "", "only of this workflow")
	f.StringVar(&l.filter.Item, "item", "", "only of this item")
	f.IntVar(&l.filter.Limit, "limit", defaultLimit, "at most so many, up to 1000")
	f.StringVar(&l.filter.Cursor, "cursor", "", "go on where an earlier listing ended")
}

// showFlags are the flags of commands that show one record.
type showFlags struct {
	adminFlags

	json bool
}

func (s *showFlags) bind(cmd *cobra.Command) {
	s.adminFlags.bind(cmd)
	cmd.Flags().BoolVar(&s.json, "json", false, "as JSON")
}

// choices lets a shell complete a flag that takes one of a few words.
func choices(cmd *cobra.Command, flag string, words ...string) {
	fixed := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, fixed); err != nil {
		panic(err) // there is no such flag
	}
}

// more tells how to see the rest of a listing.
func more(cmd *cobra.Command, next string) {
	if next != "" {
		cmd.PrintErrf("There is more: add --cursor %s\n", next)
	}
}
