package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/app"
	"keep-proxy/config"
	"keep-proxy/connectors"
	"keep-proxy/rules"
	"keep-proxy/rules/lint"
)

// checked is what check found.
type checked struct {
	Configuration []config.Problem `json:"configuration"`
	Rules         rules.Findings   `json:"rules"`
	Unseen        []unseenView     `json:"unseen"`
	Connectors    int              `json:"connectors"`
	Cases         int              `json:"cases"`

	set *rules.Set
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
	var s adminFlags
	cmd := &cobra.Command{
		Use:   "check [CONNECTOR.yaml | FOLDER …]",
		Short: "Validate configuration and connectors, and run the connectors' cases",
		Long: "Without files it checks everything that the proxy would load, and asks the ledger which connectors have\n" +
			"records. With files or folders it checks these alone, under the configuration's numbers. It tells all\n" +
			"findings at once, and exits 1 on any error.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := s.check(cmd, args)
			if err != nil {
				return err
			}
			if len(args) == 0 && !found.failed() {
				found.Rules = append(found.Rules, s.gone(cmd, found.set)...)
			}
			if err = show(cmd, found, showChecked); err == nil && found.failed() {
				err = quietly(codeFailed)
			}
			return err
		},
	}
	s.bind(jsonFlag(cmd))
	return cmd
}

// check loads configuration and rules. If the configuration has problems, the rules are held against what could be
// read of it. So all findings are told at once.
func (s *settings) check(cmd *cobra.Command, names []string) (checked, error) {
	out := checked{Configuration: []config.Problem{}, Rules: rules.Findings{}, Unseen: []unseenView{}}
	c, err := s.load(cmd)
	if problems, ok := errors.AsType[*config.Error](err); ok {
		out.Configuration = problems.Problems
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
	if out.set = set; set == nil {
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

// gone warns of connectors of the newest records that there are no more. Without a ledger there are none.
func (a *adminFlags) gone(cmd *cobra.Command, set *rules.Set) rules.Findings {
	var recorded []string
	c, err := a.load(cmd)
	if _, missing := os.Stat(app.LedgerDir(c)); err == nil && a.explicit() == "" && errors.Is(missing, fs.ErrNotExist) {
		return nil
	}
	err = a.with(cmd, func(ctx context.Context, conn *connection) error {
		newest, err := conn.Mutations(ctx, client.Filter{Limit: 1000})
		if err != nil {
			return err
		}
		for _, m := range newest.Items {
			recorded = append(recorded, m.Connector)
		}
		return nil
	})
	if err != nil {
		return rules.Findings{{
			Severity: rules.SeverityWarning, Code: "unasked", Key: "connectors", Problem: "which connectors have records isn't known: " + err.Error(),
			Fix: "if one was renamed, say was: with its old name at the top of its file",
		}}
	}
	return app.GoneAdvice(set, recorded)
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
		return app.LoadRules(c, false)
	}
	files, _, err := app.ConnectorFiles(config.Connectors{}) // Those that the named ones may extend.
	if err != nil {
		return nil, nil, err
	}
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
	set, findings := rules.Load(files, app.ParameterSettings(c.Connectors), app.RuleDefaults(c))
	if set != nil {
		findings = lint.Check(set)
	}
	return set, append(unread, findings...), nil
}

// showChecked shows all findings, a line each. They quote files of others, whose text must not drive the terminal.
func showChecked(p *page, c checked) {
	for _, problem := range c.Configuration {
		p.sayf("%s", printable(problem.String()))
	}
	for _, f := range c.Rules {
		p.sayf("%s", printable(f.String()))
	}
	if c.failed() {
		return
	}
	for _, u := range c.Unseen {
		p.sayf("Unseen: %s may change to %s. Its rule calls that %s; nobody judges what is said there, mutations included.",
			u.Operation, strings.Join(u.Upgrade, " or "), u.Effect)
	}
	if c.Cases == 0 {
		p.sayf("Loads: %s, no cases. Nothing shows yet what its rules do: add cases.", counted(c.Connectors, "connector"))
		return
	}
	p.sayf("Sound: %s, %s.", counted(c.Connectors, "connector"), counted(c.Cases, "case"))
}

// newConnectors makes the commands that read the connectors in force.
func newConnectors() *cobra.Command {
	return group("connectors", "List, show and try connectors", newConnectorsList(), newConnectorsShow(), newConnectorsTest())
}

// newSchema makes the command that prints what editors complete connector files by.
func newSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of connector files, for editors",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(connectors.Schema)
			return err
		},
	}
}

// connectorView is a connector as it is shown.
type connectorView struct {
	Name       string            `json:"name"`
	Title      string            `json:"title,omitzero"`
	Version    int               `json:"version"`
	Hash       string            `json:"hash"`
	File       string            `json:"file"`
	Hosts      []string          `json:"hosts"`
	Paths      []string          `json:"paths,omitempty"`
	HostGroup  string            `json:"host_group"`
	Reads      []string          `json:"reads"`
	Cases      int               `json:"cases"`
	Parameters []rules.Parameter `json:"parameters,omitempty"`
	Operations []operationView   `json:"operations"`
}

// operationView is an operation as it is shown.
type operationView struct {
	Name          string   `json:"name"`
	Effect        string   `json:"effect"`
	Strategies    []string `json:"strategies,omitempty"`
	OnAbsent      string   `json:"on_absent,omitzero"`
	Settle        string   `json:"settle,omitzero"`
	Confirmations int      `json:"absent_confirmations,omitzero"`
	Timeout       string   `json:"timeout,omitzero"`
	NativeKey     string   `json:"native_key,omitzero"`
	// Upgrade are the protocols to which connections may change.
	Upgrade []string `json:"upgrade,omitempty"`
}

func viewConnector(c *rules.Connector) connectorView {
	v := connectorView{
		Name: c.Name, Title: c.Title, Version: c.Version, Hash: c.Hash, File: c.File, Hosts: c.Hosts, Paths: c.Paths,
		HostGroup: c.HostGroup, Reads: c.ReadPaths, Parameters: c.Parameters, Cases: c.Cases(), Operations: []operationView{},
	}
	if c.ReadsSafe {
		v.Reads = []string{"safe-methods"}
	}
	for _, op := range c.Operations {
		v.Operations = append(v.Operations, viewOperation(op))
	}
	return v
}

func viewOperation(op *rules.Operation) operationView {
	v := operationView{Name: op.Name, Effect: op.Effect.String(), Upgrade: op.Upgrade}
	if op.Effect != rules.EffectMutation {
		return v
	}
	for _, s := range op.Strategies {
		v.Strategies = append(v.Strategies, string(s.Kind))
	}
	v.OnAbsent, v.Settle, v.Confirmations, v.Timeout = string(op.OnAbsent), op.Settle.String(), op.Confirmations, op.Timeout.String()
	if op.NativeKey != nil {
		v.NativeKey = op.NativeKey.In + " " + op.NativeKey.Name
	}
	return v
}

// loadedRules are the connectors in force.
func loadedRules(c config.Config) (*rules.Set, error) {
	set, findings, err := app.LoadRules(c, true)
	if err != nil {
		return nil, err
	}
	if set == nil {
		return nil, fmt.Errorf("the connectors don't load; see keep-proxy check\n%w", findings)
	}
	return set, nil
}

var connectorColumns = columns[connectorView]{"NAME\tVERSION\tOPERATIONS\tHOSTS\tFILE", func(v connectorView) []string {
	return []string{v.Name, strconv.Itoa(v.Version), strconv.Itoa(len(v.Operations)), clip(strings.Join(v.Hosts, ", "), 50), v.File}
}}

func newConnectorsList() *cobra.Command {
	return configured(&cobra.Command{Use: "list", Short: "List the connectors that the proxy would load"},
		func(_ *cobra.Command, c config.Config, _ []string) (map[string][]connectorView, error) {
			set, err := loadedRules(c)
			if err != nil {
				return nil, err
			}
			views := []connectorView{}
			for _, c := range set.Connectors() {
				views = append(views, viewConnector(c))
			}
			return map[string][]connectorView{"items": views}, nil
		}, func(p *page, list map[string][]connectorView) { connectorColumns.table(p, list["items"]) })
}

func newConnectorsShow() *cobra.Command {
	var asYAML bool
	var file []byte
	cmd := configured(&cobra.Command{Use: "show NAME", Short: "Show a connector's operations and numbers", Args: cobra.ExactArgs(1)},
		func(_ *cobra.Command, c config.Config, args []string) (v connectorView, err error) {
			set, err := loadedRules(c)
			if err != nil {
				return v, err
			}
			if c := set.Connector(args[0]); c != nil {
				file = c.Content
				return viewConnector(c), nil
			}
			var names []string
			for _, c := range set.Heads() {
				names = append(names, c.Name)
			}
			slices.Sort(names)
			return v, fmt.Errorf("there is no connector %q; there are %s", args[0], strings.Join(names, ", "))
		}, func(p *page, v connectorView) {
			if asYAML {
				p.Write(file)
				return
			}
			showConnector(p, v)
		})
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the file itself")
	return cmd
}

func showConnector(p *page, v connectorView) {
	p.facts(
		"connector", v.Name+" (version "+strconv.Itoa(v.Version)+")",
		"title", v.Title,
		"file", v.File,
		"hosts", strings.Join(v.Hosts, ", "),
		"paths", strings.Join(v.Paths, ", "),
		"host group", v.HostGroup,
		"reads", strings.Join(v.Reads, ", "),
		"cases", strconv.Itoa(v.Cases),
		"hash", v.Hash,
	)
	section(p, "Parameters", "NAME\tTYPE\tDEFAULT\tSET TO\tDESCRIPTION", v.Parameters, func(v rules.Parameter) []string {
		return []string{v.Name, v.Type, cmp.Or(v.Default.String(), "required"), clip(v.Set.String(), 40), v.Description}
	})
	section(p, "Operations", "NAME\tEFFECT\tRECONCILED BY\tON ABSENT\tSETTLE\tNATIVE KEY", v.Operations, func(op operationView) []string {
		if len(op.Upgrade) > 0 {
			op.Effect += ", upgrade to " + strings.Join(op.Upgrade, ", ")
		}
		return []string{op.Name, op.Effect, strings.Join(op.Strategies, ", "), op.OnAbsent, op.Settle, op.NativeKey}
	})
}
