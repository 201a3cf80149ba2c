package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

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
		newLedgerInit(), newLedgerVerify("Check every record, event and checksum; exit 1 if anything is wrong"),
		newLedgerBackup(), newLedgerRebuild(), newLedgerAcceptLoss(), newLedgerConfirm())
}

// newAudit makes the commands that show what the ledger has kept, and that it is whole.
func newAudit() *cobra.Command {
	return group("audit", "Verify and export the history",
		newLedgerVerify("Check the whole history and every record, as ledger verify does; exit 1 if anything is wrong"), newAuditExport())
}

// storeConfig is how the stopped ledger is opened by itself.
func storeConfig(cmd *cobra.Command, c config.Config) badgerstore.Config {
	return app.StoreConfig(c, version(), quietLog(c.Log, cmd.ErrOrStderr()), clock.System())
}

func newLedgerInit() *cobra.Command {
	return configured(&cobra.Command{
		Use:   "init",
		Short: "Make a new, empty ledger, and print its id",
		Long: "Makes a ledger ahead of the first start. Put its id into ledger.id: then a missing ledger, or another one,\n" +
			"refuses to start.",
	}, func(cmd *cobra.Command, c config.Config, _ []string) (map[string]string, error) {
		if err := ensureDir(c); err != nil {
			return nil, err
		}
		id, err := badgerstore.Init(storeConfig(cmd, c))
		return map[string]string{"id": id, "dir": app.LedgerDir(c)}, err
	}, func(p *page, made map[string]string) { p.sayf("%s", made["id"]) })
}

func newLedgerRebuild() *cobra.Command {
	return configured(&cobra.Command{
		Use:   "rebuild",
		Short: "Copy the records into a fresh table, and make the indexes anew",
		Long: "For a ledger that opens, and whose indexes ledger verify finds wrong. The proxy must be stopped, and\n" +
			"the disk needs as much space again as the ledger's data/ takes.",
	}, func(cmd *cobra.Command, c config.Config, _ []string) (badgerstore.Report, error) {
		p := newProgress(cmd.ErrOrStderr())
		defer p.end()
		return badgerstore.Rebuild(cmd.Context(), storeConfig(cmd, c), func(values int) { p.step("copied", int64(values), 0) })
	}, func(p *page, r badgerstore.Report) { p.sayf("Rebuilt ledger %s: %d records.", r.ID, r.Records()) })
}

func newLedgerAcceptLoss() *cobra.Command {
	var d decider
	cmd := configured(&cobra.Command{
		Use:   "accept-loss --reason TEXT",
		Short: "Go on deliberately with a ledger that is missing, damaged or shortened",
		Long: "For a ledger that refuses to start. Active work may have gone on in the part that is lost. So all of it\n" +
			"waits until a person has looked (ledger confirm). The proxy must be stopped.",
	}, func(cmd *cobra.Command, c config.Config, _ []string) (badgerstore.Loss, error) {
		return badgerstore.AcceptLoss(cmd.Context(), storeConfig(cmd, c), d.reason, d.actor)
	}, showLoss)
	d.bind(cmd, "why", "who accepts it")
	return cmd
}

func showLoss(p *page, l badgerstore.Loss) {
	made := ""
	if l.New {
		made = "nothing was left; a new ledger was made"
	}
	p.facts(
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

func newLedgerVerify(short string) *cobra.Command {
	var a adminFlags
	cmd := &cobra.Command{
		Use: "verify", Short: short,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := a.verify(cmd)
			if err != nil {
				return err
			}
			err = show(cmd, report, showReport)
			if err == nil && !report.Sound {
				err = quietly(codeFailed)
			}
			return err
		},
	}
	a.bind(jsonFlag(cmd))
	return cmd
}

// verify asks the running proxy, else reads the stopped ledger.
func (a *adminFlags) verify(cmd *cobra.Command) (*wire.VerifyReport, error) {
	c, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	p := newProgress(cmd.ErrOrStderr())
	defer p.end()
	running, err := a.running(c)
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

func showReport(p *page, r *wire.VerifyReport) {
	if r.Sound {
		p.sayf("The ledger is sound: %d events, %d records.", r.Events, r.Records)
		return
	}
	p.sayf("The ledger is not sound:")
	for _, f := range r.Findings {
		p.sayf("  %s", printable(p.on(f)))
	}
}

// backedUp is what backup tells of a file that it wrote.
type backedUp struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func newLedgerBackup() *cobra.Command {
	var a adminFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a consistent copy of the ledger, as a tar archive; - for standard output",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, c *connection) error {
				p := newProgress(cmd.ErrOrStderr())
				defer p.end()
				if args[0] == "-" {
					_, err := c.BackupLedger(ctx, &written{Writer: cmd.OutOrStdout(), p: p})
					return err
				}
				wrote := backedUp{File: args[0]}
				err := wholeFile(wrote.File, func(f *os.File) (err error) {
					if wrote.Bytes, err = c.BackupLedger(ctx, &written{Writer: f, p: p}); err == nil {
						err = f.Sync()
					}
					return err
				})
				if err != nil {
					return fmt.Errorf("backup: %w", err)
				}
				p.end()
				return show(cmd, wrote, func(p *page, b backedUp) { p.sayf("Wrote %s, %d bytes.", printable(b.File), b.Bytes) })
			})
		},
	}
	a.bind(jsonFlag(cmd))
	return cmd
}

func newLedgerConfirm() *cobra.Command {
	var d decider
	var q wire.ConfirmGap
	cmd := asking(&cobra.Command{
		Use:   "confirm (--workflow W [--item I] | --all) --reason TEXT",
		Short: "Say that you know what was done while the ledger knew nothing",
		Long: "After a restore or an accepted loss there is a time of which the ledger knows nothing. What may have been\n" +
			"sent in it is asked about before it is sent again, and items that a loss held wait. First find out in the\n" +
			"other systems what was done for a piece of work, and enter it where it is missing. Then confirm it: what\n" +
			"the ledger doesn't have counts as not done, and is sent.",
	}, func(ctx context.Context, c *connection, _ []string) (*wire.GapConfirmed, error) {
		q.Reason, q.Actor = d.reason, d.actor
		return c.ConfirmGap(ctx, q)
	}, func(p *page, done *wire.GapConfirmed) {
		p.facts("items let in", strconv.Itoa(done.Items))
		showGaps(p, done.Gaps)
	})
	d.bind(cmd, "how you know", "who confirms")
	cmd.Flags().StringVar(&q.Workflow, "workflow", "", "confirm this workflow")
	cmd.Flags().StringVar(&q.Item, "item", "", "confirm only this item of the workflow")
	cmd.Flags().BoolVar(&q.All, "all", false, "confirm everything")
	return cmd
}

// showGaps lists the times of which the ledger knows nothing.
func showGaps(p *page, gaps []wire.Gap) {
	title := p.on("The ledger knows nothing of (keep-proxy ledger confirm)")
	section(p, title, "CAUSE\tSINCE\tUNTIL\tCONFIRMED\tREASON", gaps, func(g wire.Gap) []string {
		since := "unknown"
		if !g.Since.IsZero() {
			since = stamp(g.Since)
		}
		return []string{g.Cause, since, stamp(g.Until), fmt.Sprint(len(g.Confirmed)), clip(g.Reason, 60)}
	})
}

func newAuditExport() *cobra.Command {
	var a adminFlags
	var run string
	cmd := &cobra.Command{
		Use:   "export [--run ID]",
		Short: "Write the history, or that of one run with its records and evidence, as JSON lines",
		Long: "Writes one JSON object a line. Of one run these are the run, its mutations and their events. The last line\n" +
			"has counts. If it is missing the export was cut, and the command fails. Contents of requests and answers\n" +
			"are named by their digests.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, c *connection) error { return export(ctx, cmd, c, run) })
		},
	}
	a.bind(cmd)
	cmd.Flags().StringVar(&run, "run", "", "only this run")
	return cmd
}

func export(ctx context.Context, cmd *cobra.Command, c *connection, run string) error {
	p := newProgress(cmd.ErrOrStderr())
	lines := int64(0)
	end, err := c.Audit(ctx, run, func(line []byte) error {
		lines++
		p.step("lines", lines, 0)
		_, err := cmd.OutOrStdout().Write(append(line, '\n'))
		return err
	})
	p.end()
	if problem, ok := errors.AsType[*wire.Problem](err); ok && problem.Status == 404 {
		return fmt.Errorf("audit export: there is no run %s; keep-proxy runs list has those there are", run)
	}
	if err != nil {
		return err
	}
	cmd.PrintErrf("%s, %s\n", counted(end.Mutations, "mutation"), counted(end.Events, "event"))
	return nil
}
