package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/config"
)

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
		Args: func(cmd *cobra.Command, args []string) error {
			return f.failing(cmd, usageArgs(cobra.NoArgs)(cmd, args))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.failing(cmd, f.run(cmd)) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return f.failing(cmd, usage("%s: %w; see %s --help", cmd.Name(), err, cmd.CommandPath()))
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
	if f.given(cmd) {
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

// failing has a shell that evaluates what env writes fail with it: it doesn't hear the exit code of
// what it substitutes, and would go on past the proxy.
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
	if !f.given(cmd) {
		e, err := conn.Environment(ctx)
		if err != nil {
			return nil, err
		}
		return e.Env, nil
	}
	opened, err := f.surely(ctx, conn.Client, newKey(), saying(cmd.ErrOrStderr()))
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

// dotenvQuoted writes a value as the common readers of .env files take it. They agree on what
// single quotes hold, which is itself, and on little else: what a backslash does in double
// quotes they see differently, so that one stands only where nothing else would do.
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

// passwordVariable is of the one key that is a secret and has a variable of its own, in which
// it may be written out. A command gets it with a reference to nothing: without any value
// the configuration would have a user without a password for what keep-proxy does there.
var (
	passwordVariable = config.EnvName("proxy.upstream_proxy.password")
	withheld         = "${env:WITHHELD_FROM_COMMANDS}"
)

// secretNames are the variables that configuration names as a secret's source.
func secretNames(c config.Config) []string {
	names := c.Proxy.UpstreamProxy.Password.EnvNames()
	for _, s := range c.Connectors.Settings {
		if s.Credentials != nil {
			names = append(names, s.Credentials.Value.EnvNames()...)
		}
	}
	for _, w := range c.Notify.Webhooks {
		names = append(names, w.URL.EnvNames()...)
		if w.Secret != nil {
			names = append(names, w.Secret.EnvNames()...)
		}
	}
	return names
}

// childEnvironment is the inherited environment without secrets, with the run's
// variables over it.
func childEnvironment(inherited []string, run map[string]string, secrets []string) []string {
	var out []string
	for _, line := range inherited {
		name, value, _ := strings.Cut(line, "=")
		if _, replaced := run[name]; replaced || slices.Contains(secrets, name) {
			continue
		}
		if name == passwordVariable && value != "" {
			line = name + "=" + withheld
		}
		out = append(out, line)
	}
	for _, name := range slices.Sorted(maps.Keys(run)) {
		out = append(out, name+"="+run[name])
	}
	return out
}
