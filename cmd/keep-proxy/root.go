package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"keep-proxy/admin/client"
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
	root.SetFlagErrorFunc(badUsage)
	root.AddCommand(
		newServe(), newRun(), newEnv(), newCheck(), newExplain(), newEval(), newConnectors(), newSchema(),
		newMutations(), newRuns(), newItems(), newObligations(), newImpact(), newResolve(), newStatus(), newLedger(), newAudit(),
		newCA(), newHealth(), newDoctor(), newTail(), newObserved(), newVersion(), newDemo(), newDemoClient(),
	)
	root.AddCommand(newModes()...)
	root.AddCommand(newLater()...)
	usageArgs(root.Commands())
	strictCompletion(root)
	return root
}

// usageArgs makes wrong arguments errors of the command line, in each of the commands. One that doesn't say otherwise
// takes none.
func usageArgs(commands []*cobra.Command) {
	for _, cmd := range commands {
		usageArgs(cmd.Commands())
		cmd.Args = usageCheck(cmd.Args)
	}
}

func usageCheck(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		check = cobra.NoArgs
	}
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if _, coded := errors.AsType[*exitError](err); err != nil && !coded {
			err = badUsage(cmd, err)
		}
		return err
	}
}

// badUsage is an error of the command line as cobra says it.
func badUsage(cmd *cobra.Command, err error) error {
	return usage("%s: %w; see %s --help", cmd.Name(), err, cmd.CommandPath())
}

// group makes a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, RunE: nameWhat,
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

// meaning are the flags that say which ledger, which work, or which records are meant.
var meaning = []string{
	"admin", "config", "connector", "data-dir", "item", "operation", "restored", "run", "workflow",
}

// notEmptied refuses such a flag with an empty value, as a shell gives it for a variable that isn't set. A flag that
// is left out means something else, such as every item.
func notEmptied(cmd *cobra.Command, _ []string) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.String() == "" && slices.Contains(meaning, f.Name) {
			err = usage("%s: --%s is empty; give it a value, or leave it out", cmd.Name(), f.Name)
		}
	})
	return err
}

// laterCommands are commands of later versions, with what to use meanwhile. They
// are refused by name, so that nobody looks for a typing mistake.
var laterCommands = map[string]string{
	"import":  "docs/tutorial.md writes a connector, and check says what is missing",
	"suggest": "tail --json shows the requests that no rule matched",
}

// newLater makes the hidden commands that refuse.
func newLater() []*cobra.Command {
	var commands []*cobra.Command
	for name, meanwhile := range laterCommands {
		commands = append(commands, &cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
			RunE: func(*cobra.Command, []string) error {
				return usage("%s is not yet built; meanwhile: %s", name, meanwhile)
			},
		})
	}
	return commands
}

// completionPatience is how long somebody who pressed Tab waits for a running proxy.
const completionPatience = 2 * time.Second

// strictCompletion makes cobra's completion command refuse like any group. By itself it shows its help for what it
// doesn't know, and calls that a success.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = usageCheck(nil), nameWhat
		}
	}
}

// complete gives a shell the mutations that wait for a person, as the running proxy names them. It gives none where
// no proxy runs: a stopped ledger isn't opened for a key press.
func (f *resolveFlags) complete(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, directive
	}
	conn, err := f.reach(cmd)
	if err != nil {
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

// release is set by the linker for released binaries.
var release string

// version is the release, or the commit that the binary was built from.
func version() string {
	built := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		built = info.Main.Version
	}
	return cmp.Or(release, built, "unknown")
}

// newVersion makes the command that tells the version.
func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Tell this program's version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := map[string]string{"version": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			return show(cmd, v, func(p *page, v map[string]string) {
				p.sayf("keep-proxy %s (%s, %s/%s)", v["version"], v["go"], v["os"], v["arch"])
			})
		},
	}
	jsonFlag(cmd)
	return cmd
}
