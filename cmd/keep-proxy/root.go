package main

import (
	"io"

	"github.com/spf13/cobra"
)

// streams are the program's standard ones.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// newRoot makes the command tree.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "keep-proxy",
		Short: "Let a script's requests take effect once, also when it is killed and run again",
		Long: "keep-proxy is a sidecar proxy. It records every mutation before it is sent, gives a re-run the\n" +
			"recorded answer, finds out what became of a request whose answer was lost, and stops where\n" +
			"nobody can know.",
		SilenceErrors: true,
		SilenceUsage:  true,

		PersistentPreRunE: notEmptied,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%s: %w; see %s --help", cmd.Name(), err, cmd.CommandPath())
	})
	root.AddCommand(
		newServe(), newRun(), newEnv(), newCheck(), newExplain(), newConnectors(),
		newMutations(), newRuns(), newItems(), newObligations(), newImpact(), newResolve(), newStatus(), newLedger(), newAudit(),
		newCA(), newHealth(), newDoctor(), newTail(), newVersion(), newDemo(), newDemoClient(),
	)
	root.AddCommand(newModes()...)
	root.AddCommand(newLater()...)
	strictCompletion(root)
	return root
}

// group makes a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: usageArgs(cobra.NoArgs),
		RunE: nameWhat,
		// Of a command that isn't among them its name is what is wrong, and not the flags after it.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	cmd.AddCommand(commands...)
	return cmd
}

// nameWhat is what a command does that only holds others.
func nameWhat(cmd *cobra.Command, _ []string) error {
	return usage("%s: name what to do; see %s --help", cmd.Name(), cmd.CommandPath())
}
