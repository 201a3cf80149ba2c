package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"keep-proxy/cli/trials"
	"keep-proxy/connectors"
)

// newConnectorsTest makes the command that tries a connector against a fake.
func newConnectorsTest() *cobra.Command {
	var fake string
	var operations []string
	cmd := &cobra.Command{
		Use:   "test NAME|FILE",
		Short: "Try a connector against a fake of its API",
		Long: "Runs the whole program in a temporary folder, sends each mutating operation's sample to a fake, and loses\n" +
			"answers, delays commits and so on. Nothing leaves this machine. What is shown is judged by the fake's own log.\n" +
			"A connector of your own needs --fake with a file as docs/fakes.md describes, unless it extends a bundled one.\n" +
			"Exits 1 if a trial failed, or if nothing could be tried.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := trialOptions(args[0], fake)
			if err != nil {
				return err
			}
			o.Version, o.Log, o.Operations = version(), zerolog.Nop(), operations
			if !asJSON(cmd) {
				o.Each = func(row trials.Row) { err = errors.Join(err, show(cmd, row, showTrials)) }
			}
			report, failed := trials.Run(cmd.Context(), o)
			if err = errors.Join(err, failed); err == nil && asJSON(cmd) {
				err = writeJSON(cmd.OutOrStdout(), report)
			}
			switch tried, _ := report.Tried(); {
			case err == nil && tried == 0:
				err = errors.New("nothing was tried: no operation has a case whose request the fake takes for a change")
			case err == nil && report.Failed():
				err = quietly(codeFailed)
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&operations, "operation", nil, "only these operations")
	cmd.Flags().StringVar(&fake, "fake", "", "file with the fake; default: that of the bundled connector, or of the one that the file extends")
	return jsonFlag(cmd)
}

// trialOptions finds the connector and the fake that are named.
func trialOptions(name, fake string) (o trials.Options, err error) {
	o.Name = name
	bundled, err := connectors.Files()
	if err != nil {
		return o, err
	}
	if !slices.ContainsFunc(bundled, func(f connectors.File) bool { return f.Name == name }) {
		var own struct{ Extends string }
		if o.Connector, err = os.ReadFile(name); err == nil {
			err = yaml.Load(o.Connector, &own)
		}
		if err != nil {
			return o, fmt.Errorf("%s is no bundled connector, and no file of one: %w", name, err)
		}
		name = cmp.Or(own.Extends, strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	}
	if fake != "" {
		o.Fake, err = os.ReadFile(fake)
		return o, err
	}
	if o.Fake, err = connectors.Fake(name); err != nil {
		return o, fmt.Errorf("%w: write one as docs/fakes.md describes, and name it with --fake FILE", err)
	}
	return o, nil
}

// showTrials shows what came of an operation. It quotes files of others, whose text must not drive the terminal.
func showTrials(p *page, r trials.Row) {
	for line := range strings.Lines(r.Text()) {
		p.sayf("%s", printable(strings.TrimRight(line, "\n")))
	}
}
