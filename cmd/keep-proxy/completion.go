package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
)

// completionPatience is how long somebody who pressed Tab waits for a running proxy.
const completionPatience = 2 * time.Second

// strictCompletion makes cobra's completion command one that refuses like any group:
// by itself it shows its help for what it doesn't know, and calls that a success.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = usageArgs(cobra.NoArgs), nameWhat
		}
	}
}

// complete gives a shell the mutations that wait for a person, by the running proxy's
// word; none where none runs, as a stopped ledger isn't opened for a key press.
func (f *resolveFlags) complete(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, directive
	}
	c, err := f.load(cmd)
	if err != nil {
		return nil, directive
	}
	conn, err := f.running(c)
	if err != nil || conn == nil {
		return nil, directive
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	open, err := conn.Escalations(ctx, client.Filter{})
	if err != nil {
		return nil, directive
	}
	var ids []cobra.Completion
	for _, e := range open.Items {
		if strings.HasPrefix(e.Mutation, begun) {
			ids = append(ids, cobra.CompletionWithDesc(e.Mutation, printable(e.Attempted)))
		}
	}
	return ids, directive
}
