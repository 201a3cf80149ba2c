package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
	"keep-proxy/app"
	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/ledger/badgerstore"
)

// newLedger makes the commands that look after the ledger as a whole.
func newLedger() *cobra.Command {
	return group("ledger", "Make, verify and back up the ledger",
		newLedgerInit(), newLedgerVerify(), newLedgerBackup(), newLedgerRebuild(), newLedgerAcceptLoss(), newLedgerConfirm())
}

// storeConfig is how the stopped ledger is opened by itself.
func storeConfig(cmd *cobra.Command, c config.Config) badgerstore.Config {
	return app.StoreConfig(c, version(), quietLog(c.Log, cmd.ErrOrStderr()), clock.System())
}

func newLedgerInit() *cobra.Command {
	var s settings
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a new, empty ledger, and print its id",
		Long: "Makes a ledger ahead of the first start. Put its id into ledger.id: then a missing ledger, or another one,\n" +
			"refuses to start.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load(cmd)
			if err != nil {
				return err
			}
			if err := ensureDir(c); err != nil {
				return err
			}
			id, err := badgerstore.Init(storeConfig(cmd, c))
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]string{"id": id, "dir": app.LedgerDir(c)})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
			return err
		},
	}
	s.bind(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func newLedgerVerify() *cobra.Command {
	var s showFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check every record, event and checksum; exit 1 if anything is wrong",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := s.verify(cmd)
			if err != nil {
				return err
			}
			err = output(cmd, s.json, report, func(w io.Writer, r *wire.VerifyReport) error { return showReport(w, r, again(cmd)) })
			if err == nil && !report.Sound {
				err = quietly(codeFailed)
			}
			return err
		},
	}
	s.bind(cmd)
	return cmd
}

// verify asks the running proxy, else reads the stopped ledger.
func (s *showFlags) verify(cmd *cobra.Command) (*wire.VerifyReport, error) {
	c, err := s.load(cmd)
	if err != nil {
		return nil, err
	}
	p := newProgress(cmd.ErrOrStderr())
	defer p.end()
	running, err := s.running(c)
	if err != nil {
		return nil, err
	}
	if running != nil {
		report, err := running.VerifyLedger(cmd.Context(), func(step wire.Progress) { p.step(step.What, step.Done, step.Total) })
		return report, errors.Join(err, running.Close())
	}
	found, err := badgerstore.Verify(cmd.Context(), storeConfig(cmd, c), func(values int) { p.step("verified", int64(values), 0) })
	report := &wire.VerifyReport{Sound: err == nil, Findings: []string{}, Events: found.Events, Records: found.Records()}
	if err != nil {
		report.Findings = append(report.Findings, err.Error())
	}
	return report, nil
}

func showReport(w io.Writer, r *wire.VerifyReport, flags string) error {
	if r.Sound {
		_, err := fmt.Fprintf(w, "The ledger is sound: %d events, %d records.\n", r.Events, r.Records)
		return err
	}
	fmt.Fprintln(w, "The ledger is not sound:")
	for _, f := range r.Findings {
		fmt.Fprintln(w, "  "+printable(onSameLedger(flags, f)))
	}
	return nil
}

// backedUp is what backup tells of a file that it wrote.
type backedUp struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func newLedgerBackup() *cobra.Command {
	var a showFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a consistent copy of the ledger, as a tar archive; - for standard output",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, c *connection) error {
				p := newProgress(cmd.ErrOrStderr())
				defer p.end()
				if args[0] == "-" {
					_, err := c.BackupLedger(ctx, p.counting(cmd.OutOrStdout(), "bytes written"))
					return err
				}
				wrote, err := backupTo(ctx, c, args[0], p)
				p.end()
				switch {
				case err != nil:
					return err
				case a.json:
					return writeJSON(cmd.OutOrStdout(), wrote)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s, %d bytes.\n", printable(wrote.File), wrote.Bytes)
				return err
			})
		},
	}
	a.bind(cmd)
	return cmd
}

// backupTo writes the file whole or not at all.
func backupTo(ctx context.Context, c *connection, name string, p *progress) (backedUp, error) {
	t, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return backedUp{}, fmt.Errorf("backup: %w", err)
	}
	n, err := c.BackupLedger(ctx, p.counting(t, "bytes written"))
	if err == nil {
		err = t.Sync()
	}
	err = errors.Join(err, t.Close())
	if err == nil {
		err = os.Rename(t.Name(), name)
	}
	if err != nil {
		return backedUp{}, errors.Join(fmt.Errorf("backup: %w", err), os.Remove(t.Name()))
	}
	return backedUp{name, n}, nil
}

func newLedgerRebuild() *cobra.Command {
	var s settings
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Copy the records into a fresh table, and make the indexes anew",
		Long: "For a ledger that opens, and whose indexes ledger verify finds wrong. The proxy must be stopped, and\n" +
			"the disk needs as much space again as the ledger's data/ takes.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load(cmd)
			if err != nil {
				return err
			}
			p := newProgress(cmd.ErrOrStderr())
			defer p.end()
			report, err := badgerstore.Rebuild(cmd.Context(), storeConfig(cmd, c), func(values int) { p.step("copied", int64(values), 0) })
			p.end()
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(cmd.OutOrStdout(), report)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Rebuilt ledger %s: %d records.\n", report.ID, report.Records())
			return err
		},
	}
	s.bind(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func newLedgerAcceptLoss() *cobra.Command {
	var s settings
	var d decider
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "accept-loss --reason TEXT",
		Short: "Go on deliberately with a ledger that is missing, damaged or shortened",
		Long: "For a ledger that refuses to start. Active work may have gone on in the part that is lost. So all of it\n" +
			"waits until a person has looked (ledger confirm). The proxy must be stopped.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load(cmd)
			if err != nil {
				return err
			}
			loss, err := badgerstore.AcceptLoss(cmd.Context(), storeConfig(cmd, c), d.reason, d.actor)
			if err != nil {
				return err
			}
			return output(cmd, asJSON, loss, showLoss)
		},
	}
	s.bind(cmd)
	d.bind(cmd, "why", "who accepts it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func showLoss(w io.Writer, l badgerstore.Loss) error {
	made := ""
	if l.New {
		made = "nothing was left; a new ledger was made"
	}
	return facts(w,
		"ledger", l.ID,
		"cause", l.Cause,
		"new", made,
		"mutations held", fmt.Sprint(l.Mutations),
		"runs held", fmt.Sprint(l.Runs),
		"items held", fmt.Sprint(l.Items),
		"bodies gone", fmt.Sprint(l.Bodies),
		"events gone", fmt.Sprint(l.Events),
	)
}
