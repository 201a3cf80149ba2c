package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/cli/managed"
)

// What --if-done takes.
const (
	ifDoneSkip = "skip"
	ifDoneFail = "fail"
	ifDoneRun  = "run"
)

// itemsMany is what --items takes besides one.
const itemsMany = "many"

// What these flags take; left out they are empty.
var (
	ifDoneWords = []string{ifDoneSkip, ifDoneFail, ifDoneRun}
	itemsWords  = []string{"one", itemsMany}
)

// openFlags describe a run that is to be opened.
type openFlags struct {
	wire.OpenRun

	flags *pflag.FlagSet
}

// given names a flag by which a run is described; empty for none.
func (o *openFlags) given() (name string) {
	o.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			name = f.Name
		}
	})
	return name
}

func (o *openFlags) bind(cmd *cobra.Command) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&o.Workflow, "workflow", "", "the automation that the run belongs to")
	f.StringVar(&o.Item, "item", "", "the unit of work that must not be done twice")
	f.BoolVar(&o.Once, "once", false, "instead of --item: a re-run is new work")
	f.StringVar(&o.Items, "items", "", "many instead of --item: each request names its item, as the user of the proxy's\naddress or in Keep-Item (default one)")
	f.IntVar(&o.Attempt, "attempt", 0, "the item's current attempt (default that)")
	f.StringVar(&o.Title, "title", "", "what people are shown")
	f.StringVar(&o.Mutations, "mutations", "", "none, one or many (default many)")
	f.StringVar(&o.OnFailure, "on-failure", "", "abort, or return to hand the script its failed answers (default abort)")
	f.BoolVar(&o.Takeover, "takeover", false, "end the item's running run instead of refusing this one")
	f.StringVar(&o.IfDone, "if-done", "", "with an item that is done or skipped: skip the command, fail, or run it,\nreading only (default skip)")
	f.StringVar(&o.ResumeHint, "resume-hint", "", "how a person starts the work again")
	f.StringSliceVar(&o.Tolerate, "tolerate", nil,
		"a refusal that is meant, as CODE:HOST, such as\nunmatched:telemetry.example.com; the item can be done all the same")
	f.BoolVar(&o.Passthrough, "passthrough", false, "with --mutations none: allow the hosts of proxy.passthrough, where nobody\nsees what is changed")
	f.BoolVar(&o.Listener, "listener", false, "a proxy address of the run's own, which takes no credentials,\nfor clients that can't be given any")
	f.DurationVar((*time.Duration)(&o.TTL), "ttl", 0, "end the run when nothing is heard of it for so long (default runs.ttl)")
	o.flags = f
	cmd.Flags().AddFlagSet(f)
	for flag, words := range map[string][]string{
		"items": itemsWords, "if-done": ifDoneWords, "mutations": {"none", "one", "many"}, "on-failure": {"abort", "return"},
	} {
		choices(cmd, flag, words...)
	}
}

// check wants a workflow, and one of item and once.
func (o *openFlags) check(command string) error {
	switch {
	case o.Workflow == "":
		return usage("%s: --workflow is missing; name the automation", command)
	case !utf8.ValidString(o.Workflow) || !utf8.ValidString(o.Item) || !utf8.ValidString(o.Title):
		return usage("%s: a name is no UTF-8; give it encoded, such as in percent-encoding", command)
	case o.Items != "" && !slices.Contains(itemsWords, o.Items):
		return usage("%s: --items %s is unknown; give one or many", command, o.Items)
	case o.Items == itemsMany && (o.Once || o.Item != "" || o.Attempt != 0):
		return usage("%s: --items many excludes --item, --once and --attempt: each request names its item", command)
	case o.Items == itemsMany:
	case o.Once && o.Item != "":
		return usage("%s: --item and --once exclude each other; give one of them", command)
	case !o.Once && o.Item == "":
		return usage("%s: --item is missing; name the unit of work, or say --once if a re-run is new work", command)
	case o.IfDone != "" && !slices.Contains(ifDoneWords, o.IfDone):
		return usage("%s: --if-done %s is unknown; give skip, fail or run", command, o.IfDone)
	case o.TTL < 0:
		return usage("%s: --ttl %s is negative", command, time.Duration(o.TTL))
	}
	return nil
}

// surely opens the run under a key, and finds it where the answer is lost.
func (o *openFlags) surely(ctx context.Context, c *client.Client, key string, say func(string, ...any)) (*wire.OpenedRun, error) {
	return managed.OpenSurely(ctx, func(ctx context.Context) (*wire.OpenedRun, error) {
		return c.OpenRun(ctx, o.OpenRun, key)
	}, say)
}

// openAdvice says what to do about a refusal, by its name, where the refusal itself
// doesn't.
var openAdvice = map[string]string{
	"item-done": "nothing is left to do for it; keep-proxy items reopen or keep-proxy items new-attempt allows more",
	"draining":  "keep-proxy resume ends it",
	"token":     "name the operator's token file with " + tokenVariable,
}

// openError says why no run was opened, and what to do.
func openError(err error) error {
	if errors.Is(err, managed.ErrOpenLost) {
		return fmt.Errorf("%w. If one was, it keeps its item busy until its time limit: see keep-proxy runs list --running, "+
			"or run the same command again with --takeover", err)
	}
	if p, ok := errors.AsType[*client.Problem](err); ok && openAdvice[p.Name()] != "" {
		return fmt.Errorf("no run was opened: %w To go on: %s", err, openAdvice[p.Name()])
	}
	return fmt.Errorf("no run was opened: %w", err)
}

// envFlags are the flags of env.
type envFlags struct {
	adminFlags
	openFlags

	runID  string
	format string
}

// formats are the ways in which env writes variables.
var formats = map[string]func(io.Writer, map[string]string) error{
	"sh":     eachVariable("export %s=%s\n", quoted),
	"fish":   eachVariable("set -gx %s %s\n", fishQuoted),
	"dotenv": eachVariable("%s=%s\n", dotenvQuoted),
	"json":   func(w io.Writer, env map[string]string) error { return writeJSON(w, env) },
}

// newEnv makes the command that prints a run's variables for a shell.
func newEnv() *cobra.Command {
	f := &envFlags{}
	cmd := &cobra.Command{
		Use:   "env [--workflow W (--item I | --once)] [flags]",
		Short: "Print the variables by which a shell uses the proxy",
		Long: "With --workflow it opens a run for the shell. That ends by its time limit, or with keep-proxy runs end.\n" +
			"Without --workflow the variables are those of the unmanaged scope, if one is configured. A proxy must be\n" +
			"running.\n\n" +
			"  eval \"$(keep-proxy env --workflow W --item I)\"\n\n" +
			"On any error it writes false, so that eval fails. A script must end then, by set -e or || exit:\n" +
			"else it goes on without the proxy.",
		Args: func(cmd *cobra.Command, args []string) error { return f.failing(cmd, usageCheck(nil)(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error { return f.failing(cmd, f.run(cmd)) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return f.failing(cmd, badUsage(cmd, err))
	})
	f.adminFlags.bind(cmd)
	f.openFlags.bind(cmd)
	cmd.Flags().StringVar(&f.runID, "run", "", "not yet built: join the run with this id")
	cmd.Flags().StringVar(&f.format, "format", "sh", "sh, fish, dotenv or json")
	choices(cmd, "format", slices.Sorted(maps.Keys(formats))...)
	return cmd
}

func (f *envFlags) run(cmd *cobra.Command) error {
	write, ok := formats[f.format]
	if !ok {
		return usage("env: --format %s is unknown; give one of %s", f.format, strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
	}
	if f.runID != "" {
		return usage("env: --run is not yet built: the token of a run is given once, when it is opened; open a run of your own with --workflow and --item")
	}
	if f.given() != "" {
		if err := f.check("env"); err != nil {
			return err
		}
	}
	conn, err := f.reach(cmd)
	if err != nil {
		return err
	}
	env, err := f.variables(cmd, conn)
	if err == nil {
		err = write(cmd.OutOrStdout(), env)
	}
	return errors.Join(err, conn.Close())
}

// failing makes a shell that evaluates what env writes fail too. The shell ignores the exit code of what it
// substitutes, and would go on past the proxy.
func (f *envFlags) failing(cmd *cobra.Command, err error) error {
	if err == nil || f.format == "dotenv" || f.format == "json" {
		return err
	}
	if _, writing := fmt.Fprintln(cmd.OutOrStdout(), "false"); writing != nil {
		return errors.Join(err, writing)
	}
	return err
}

// variables opens a run, or takes the unmanaged scope's variables.
func (f *envFlags) variables(cmd *cobra.Command, conn *connection) (map[string]string, error) {
	ctx := cmd.Context()
	if f.given() == "" {
		e, err := conn.Environment(ctx)
		if err != nil {
			return nil, err
		}
		return e.Env, nil
	}
	opened, err := f.surely(ctx, conn.Client, rand.Text(), saying(cmd.ErrOrStderr()))
	if err != nil {
		return nil, noRun(openError(err))
	}
	return opened.Env, nil
}

// eachVariable writes one line a variable, in the order of names.
func eachVariable(line string, quote func(string) string) func(io.Writer, map[string]string) error {
	return func(w io.Writer, env map[string]string) error {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if _, err := fmt.Fprintf(w, line, name, quote(env[name])); err != nil {
				return err
			}
		}
		return nil
	}
}

// plainWord matches what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted writes a word as a POSIX shell, and fish, read it back.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// fishQuoted writes a word as fish reads it back: inside its single quotes a
// backslash escapes a quote and itself.
func fishQuoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(word) + "'"
}

// dotenvQuoted writes a value as the common readers of .env files take it. They agree on single quotes. They differ
// on a backslash in double quotes, so that it is the last resort.
func dotenvQuoted(value string) string {
	switch {
	case value == "" || plainWord.MatchString(value):
		return value
	case !strings.ContainsAny(value, "'\n\r"):
		return "'" + value + "'"
	case !strings.ContainsAny(value, "\"\\$`\n\r"):
		return `"` + value + `"`
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "\n", `\n`, "\r", `\r`).Replace(value) + `"`
}
