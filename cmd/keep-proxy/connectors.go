package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/app"
	"keep-proxy/config"
	"keep-proxy/rules"
)

// newConnectors makes the commands that read the connectors in force.
func newConnectors() *cobra.Command {
	return group("connectors", "List and show connectors", newConnectorsList(), newConnectorsShow())
}

// connectorView is a connector as it is shown.
type connectorView struct {
	Name       string          `json:"name"`
	Title      string          `json:"title,omitzero"`
	Version    int             `json:"version"`
	Hash       string          `json:"hash"`
	File       string          `json:"file"`
	Hosts      []string        `json:"hosts"`
	HostGroup  string          `json:"host_group"`
	Reads      []string        `json:"reads"`
	Cases      int             `json:"cases"`
	Operations []operationView `json:"operations"`
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
		Name: c.Name, Title: c.Title, Version: c.Version, Hash: c.Hash, File: c.File, Hosts: c.Hosts,
		HostGroup: c.HostGroup, Reads: c.ReadPaths, Cases: c.Cases(), Operations: []operationView{},
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

// loaded loads the connectors in force.
func (s *settings) loaded(cmd *cobra.Command) (*rules.Set, error) {
	c, err := s.load(cmd)
	if err != nil {
		return nil, err
	}
	return loadedRules(c)
}

func loadedRules(c config.Config) (*rules.Set, error) {
	set, findings, err := app.LoadRules(c)
	if err != nil {
		return nil, err
	}
	if set == nil {
		return nil, fmt.Errorf("the connectors don't load; see keep-proxy check\n%w", findings)
	}
	return set, nil
}

func newConnectorsList() *cobra.Command {
	var s settings
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the connectors that the proxy would load", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := s.loaded(cmd)
			if err != nil {
				return err
			}
			views := make([]connectorView, 0, len(set.Connectors()))
			rows := make([][]string, 0, len(set.Connectors()))
			for _, c := range set.Connectors() {
				v := viewConnector(c)
				views = append(views, v)
				rows = append(rows, []string{v.Name, strconv.Itoa(v.Version), strconv.Itoa(len(v.Operations)), clip(strings.Join(v.Hosts, ", "), 50), v.File})
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"items": views})
			}
			return table(cmd.OutOrStdout(), []string{"NAME", "VERSION", "OPERATIONS", "HOSTS", "FILE"}, rows)
		},
	}
	s.bind(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func newConnectorsShow() *cobra.Command {
	var s settings
	var asJSON, asYAML bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a connector's operations and numbers", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := s.loaded(cmd)
			if err != nil {
				return err
			}
			c := set.Connector(args[0])
			switch {
			case c == nil:
				return fmt.Errorf("there is no connector %q; there are %s", args[0], strings.Join(connectorNames(set), ", "))
			case asYAML:
				_, err := cmd.OutOrStdout().Write(c.Content)
				return err
			case asJSON:
				return writeJSON(cmd.OutOrStdout(), viewConnector(c))
			}
			return showConnector(cmd.OutOrStdout(), viewConnector(c))
		},
	}
	s.bind(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the file itself")
	return cmd
}

func connectorNames(set *rules.Set) []string {
	var names []string
	for _, c := range set.Connectors() {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

func showConnector(w io.Writer, v connectorView) error {
	err := facts(w,
		"connector", v.Name+" (version "+strconv.Itoa(v.Version)+")",
		"title", v.Title,
		"file", v.File,
		"hosts", strings.Join(v.Hosts, ", "),
		"host group", v.HostGroup,
		"reads", strings.Join(v.Reads, ", "),
		"cases", strconv.Itoa(v.Cases),
		"hash", v.Hash,
	)
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(v.Operations))
	for _, op := range v.Operations {
		if len(op.Upgrade) > 0 {
			op.Effect += ", upgrade to " + strings.Join(op.Upgrade, ", ")
		}
		rows = append(rows, []string{op.Name, op.Effect, strings.Join(op.Strategies, ", "), op.OnAbsent, op.Settle, op.NativeKey})
	}
	return section(w, "Operations", []string{"NAME", "EFFECT", "RECONCILED BY", "ON ABSENT", "SETTLE", "NATIVE KEY"}, rows)
}
