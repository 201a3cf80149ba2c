package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/app"
	"keep-proxy/config"
	"keep-proxy/rules"
	"keep-proxy/rules/lint"
)

// checked is what check found.
type checked struct {
	Configuration []problemView  `json:"configuration"`
	Rules         rules.Findings `json:"rules"`
	Unseen        []unseenView   `json:"unseen"`
	Connectors    int            `json:"connectors"`
	Cases         int            `json:"cases"`
}

// problemView is a config.Problem in JSON.
type problemView struct {
	Source string `json:"source"`
	Line   int    `json:"line,omitzero"`
	Column int    `json:"column,omitzero"`
	Key    string `json:"key"`
	Value  string `json:"value,omitzero"`
	Text   string `json:"text"`
	Fix    string `json:"fix"`
}

// unseenView is an operation whose connections may change to protocols that nobody looks into.
type unseenView struct {
	Operation string   `json:"operation"`
	Effect    string   `json:"effect"`
	Upgrade   []string `json:"upgrade"`
}

// failed reports whether the proxy would not start with it.
func (c checked) failed() bool { return len(c.Configuration) > 0 || c.Rules.Failed() }

// newCheck makes the command that validates everything.
func newCheck() *cobra.Command {
	var s settings
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [CONNECTOR.yaml | FOLDER …]",
		Short: "Validate configuration and connectors, and run the connectors' cases",
		Long: "Without files it checks everything that the proxy would load. With files or folders it checks these alone,\n" +
			"under the configuration's numbers. It tells all findings at once, and exits 1 on any error.",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := s.check(cmd, args)
			if err != nil {
				return err
			}
			err = output(cmd, asJSON, found, func(w io.Writer, found checked) error { return found.write(w) })
			if err == nil && found.failed() {
				err = quietly(codeFailed)
			}
			return err
		},
	}
	s.bind(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// check loads configuration and rules. With problems of the configuration the rules are held
// against what could be read of it, so that all findings are told at once.
func (s *settings) check(cmd *cobra.Command, names []string) (checked, error) {
	out := checked{Configuration: []problemView{}, Rules: rules.Findings{}, Unseen: []unseenView{}}
	c, err := s.load(cmd)
	if problems, ok := errors.AsType[*config.Error](err); ok {
		for _, p := range problems.Problems {
			out.Configuration = append(out.Configuration, problemView(p))
		}
		c = readable(problems)
	} else if err != nil {
		return out, err
	} else if len(names) == 0 {
		out.Rules = append(out.Rules, app.SecretAdvice(c)...)
	}
	set, findings, err := loadFiles(c, names)
	if err != nil {
		return out, err
	}
	out.Rules = append(out.Rules, findings...)
	if set == nil {
		return out, nil
	}
	out.Rules = append(out.Rules, set.RunCases()...)
	out.Rules = append(out.Rules, app.AccountAdvice(set, c)...)
	for _, connector := range set.Connectors() {
		out.Connectors++
		out.Cases += connector.Cases()
		for _, op := range connector.Operations {
			if len(op.Upgrade) > 0 {
				out.Unseen = append(out.Unseen, unseenView{connector.Name + "." + op.Name, op.Effect.String(), op.Upgrade})
			}
		}
	}
	return out, nil
}

// readable is what of a configuration with problems can be looked into. What isn't known for
// certain is left out: findings about it would not be there once the problems are mended.
func readable(e *config.Error) config.Config {
	c := e.Read
	for _, p := range e.Problems {
		switch {
		case p.Key == "":
			// Nothing of the file was read, or not all of it.
			c.Connectors = config.Connectors{}
		case p.Key == "connectors" || strings.HasPrefix(p.Key, "connectors.bundled"):
			c.Connectors.Bundled, c.Connectors.Settings = config.Bundled{}, nil
		case strings.HasPrefix(p.Key, "connectors."):
			// Settings are judged by the connectors that there are.
			c.Connectors.Settings = nil
		}
	}
	return c
}

// loadFiles loads what is configured, or the named files and folders alone. What of them can't
// be read is a finding among the others.
func loadFiles(c config.Config, names []string) (*rules.Set, rules.Findings, error) {
	if len(names) == 0 {
		return app.LoadRules(c)
	}
	var files []rules.File
	var unread rules.Findings
	for _, name := range names {
		found, err := app.NamedFiles(name)
		if err != nil {
			unread = append(unread, rules.Finding{
				Severity: rules.SeverityError, Code: "unreadable", File: name, Problem: "can't be read: " + err.Error(),
				Fix: "name a connector file, or a folder with .yaml files",
			})
		}
		files = append(files, found...)
	}
	set, findings := rules.Load(files, nil, app.RuleDefaults(c))
	if set != nil {
		findings = lint.Check(set)
	}
	return set, append(unread, findings...), nil
}

// write tells all findings, a line each. They name keys and texts of files that somebody else may
// have written, in which an escape looks harmless: it must not drive the terminal.
func (c checked) write(w io.Writer) error {
	for _, p := range c.Configuration {
		fmt.Fprintln(w, printable(config.Problem(p).String()))
	}
	for _, f := range c.Rules {
		fmt.Fprintln(w, printable(f.String()))
	}
	if c.failed() {
		return nil
	}
	for _, u := range c.Unseen {
		fmt.Fprintf(w, "Unseen: %s may change to %s. Its rule calls that %s; nobody judges what is said there, mutations included.\n",
			u.Operation, strings.Join(u.Upgrade, " or "), u.Effect)
	}
	_, err := fmt.Fprintf(w, "Sound: %s, %s.\n", counted(c.Connectors, "connector"), counted(c.Cases, "case"))
	return err
}

// counted says how many there are of what an s makes plural.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
