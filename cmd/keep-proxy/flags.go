package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"keep-proxy/admin/client"
	"keep-proxy/config"
)

// configVariable names the configuration file where --config doesn't.
const configVariable = "KEEP_CONFIG"

// settings are the flags by which a command finds its configuration.
type settings struct {
	file    string
	dataDir string
	// keys maps further flags to the keys that they set.
	keys map[string]string
}

// bind adds the flags to a command.
func (s *settings) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.file, "config", "", "configuration file (default: "+configVariable+")")
	cmd.Flags().StringVar(&s.dataDir, "data-dir", "", "folder of ledger, CA and token (ledger.dir)")
	s.key("data-dir", "ledger.dir")
}

func (s *settings) key(flag, key string) {
	if s.keys == nil {
		s.keys = map[string]string{}
	}
	s.keys[flag] = key
}

// anywhere is the flags by which a command finds the same configuration from any folder, with a space before each.
func (s *settings) anywhere() string {
	flag := func(name, path string) string {
		if path == "" {
			return ""
		}
		if whole, err := filepath.Abs(path); err == nil {
			path = whole
		}
		return " --" + name + " " + quoted(path)
	}
	return flag("config", s.file) + flag("data-dir", s.dataDir)
}

// load merges defaults, file, environment and the flags that were given.
func (s *settings) load(cmd *cobra.Command) (config.Config, error) {
	if named := os.Getenv(configVariable); s.file == "" && named != "" {
		s.file = named
	}
	o := config.Options{File: s.file, Environ: os.Environ()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		key, ok := s.keys[f.Name]
		if !ok {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		o.Flags = append(o.Flags, config.Flag{Name: f.Name, Key: key, Values: values})
	})
	return config.Load(o)
}

// jsonFlag adds the flag that asJSON reads.
func jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("json", false, "as JSON")
	return cmd
}

// asJSON reports whether the command is to write JSON.
func asJSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("json")
	return f != nil && f.Value.String() == "true"
}

// choices lets a shell complete a flag that takes one of a few words.
func choices(cmd *cobra.Command, flag string, words ...string) {
	fixed := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, fixed); err != nil {
		panic(err) // there is no such flag
	}
}

// isTerminal reports whether a person reads the stream, or types into it.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// configured gives a command the flags to find its configuration. It works with that, and shows what comes of it.
func configured[T any](cmd *cobra.Command, work func(*cobra.Command, config.Config, []string) (T, error), write func(*page, T)) *cobra.Command {
	var s settings
	s.bind(jsonFlag(cmd))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := s.load(cmd)
		if err != nil {
			return err
		}
		v, err := work(cmd, c, args)
		if err != nil {
			return err
		}
		return show(cmd, v, write)
	}
	return cmd
}

// asking gives a command the flags to find the API. It asks, and shows the answer.
func asking[T any](cmd *cobra.Command, ask func(context.Context, *connection, []string) (T, error), write func(*page, T)) *cobra.Command {
	var a adminFlags
	a.bind(jsonFlag(cmd))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd, func(ctx context.Context, c *connection) error {
			v, err := ask(ctx, c, args)
			if err != nil {
				return badFlags(cmd, err)
			}
			return show(cmd, v, write)
		})
	}
	return cmd
}

// decider are the flags by which a person says why they decide, and who they are.
type decider struct{ reason, actor string }

// bind adds the flags. Without a reason the command refuses before it opens anything.
func (d *decider) bind(cmd *cobra.Command, reason, actor string) {
	cmd.Flags().StringVar(&d.reason, "reason", "", reason)
	cmd.Flags().StringVar(&d.actor, "actor", person(), actor)
	cmd.PreRunE = d.check
}

func (d *decider) check(cmd *cobra.Command, _ []string) error {
	if d.reason != "" {
		return nil
	}
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return usage("%s: --reason is missing; say why, for whoever reads the history", name)
}

// person is who sits at the keyboard, as far as the system knows. An image without users has the process's uid alone.
func person() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(os.Getenv("USER"), "uid "+strconv.Itoa(os.Getuid()))
}

// badFlags makes a refusal an error of the command line if flags are all that is wrong.
func badFlags(cmd *cobra.Command, err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || len(p.Errors) == 0 {
		return err
	}
	for _, f := range p.Errors {
		if !strings.HasPrefix(flagFor(cmd, f.Where), "--") {
			return err
		}
	}
	return &exitError{code: codeUsage, err: err}
}
