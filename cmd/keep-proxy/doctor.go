package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/app"
	"keep-proxy/cli/child"
	"keep-proxy/cli/doctor"
	"keep-proxy/cli/serving"
	"keep-proxy/config"
)

// otherFiles are open besides the connections, of which each client's can take one to an
// upstream.
const otherFiles = 1_000

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	showFlags

	inside  bool
	targets []string
}

// newDoctor makes the command that examines an installation, or a sandbox.
func newDoctor() *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor [--inside] [--target HOST:PORT]…",
		Short: "Examine the installation, or a sandbox from inside",
		Long: "Outside a run it examines data folder, disk, clocks, CA, token, configuration and proxy. Inside a run, where\n" +
			"KEEP_RUN_ID is set, it examines whether a client goes through the proxy, trusts it, and can get past it to\n" +
			"a target. The target gets a connection without a byte. Exits 1 if anything is broken.\n\n" +
			"  keep-proxy run --workflow doctor --once -- keep-proxy doctor --target api.stripe.com:443",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := f.examine(cmd)
			if err != nil {
				return err
			}
			for i := range findings {
				findings[i].Fix = onSameLedger(again(cmd), findings[i].Fix)
			}
			err = output(cmd, f.json, findings, writeFindings)
			if err == nil && doctor.Failed(findings) {
				err = quietly(codeFailed)
			}
			return err
		},
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&f.inside, "inside", false, "examine the sandbox that this command runs in (the default within a run)")
	cmd.Flags().StringArrayVar(&f.targets, "target", nil, "host:port that must not be reached but through the proxy; may be repeated")
	return cmd
}

// checkTargets refuses what can't be connected to whatever the network allows: it would look as
// if it were out of reach.
func (f *doctorFlags) checkTargets() error {
	for _, target := range f.targets {
		host, port, err := net.SplitHostPort(target)
		if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || host == "" || n == 0 {
			return usage("doctor: --target %q is no host:port; give it as in api.example.com:443", target)
		}
	}
	return nil
}

func (f *doctorFlags) examine(cmd *cobra.Command) ([]doctor.Finding, error) {
	if err := f.checkTargets(); err != nil {
		return nil, err
	}
	c, err := f.load(cmd)
	if f.inside || os.Getenv("KEEP_RUN_ID") != "" {
		s := doctor.Sandbox{Getenv: os.Getenv, Targets: f.targets, Unknown: err}
		if err == nil {
			s.TokenFiles = []string{c.Admin.TokenFile}
			s.Admin, s.AdminGuessed = f.adminHere(c)
		}
		if file := tokenFile(c); file != c.Admin.TokenFile {
			s.HostToken = file
		}
		return s.Examine(cmd.Context()), nil
	}
	if len(f.targets) > 0 {
		return nil, usage("doctor: --target is for the inside of a sandbox; run it under keep-proxy run, or with --inside")
	}
	if problems, ok := errors.AsType[*config.Error](err); ok {
		return []doctor.Finding{{Name: "configuration", Verdict: doctor.Broken, Detail: problems.Error(), Fix: "keep-proxy check tells all of it"}}, nil
	}
	if err != nil {
		return nil, err
	}
	findings := append([]doctor.Finding{f.configuration(cmd)}, installation(c).Examine()...)
	return append(findings, f.proxy(cmd, c), stopping()), nil
}

// adminHere is where the admin API would be found from here. It is a guess where nothing in here names
// it: a proxy of another configuration listens elsewhere.
func (f *doctorFlags) adminHere(c config.Config) (address string, guessed bool) {
	if url := f.explicit(); url != "" {
		return url, false
	}
	if state, err := serving.Find(c.Ledger.Dir); err == nil && state != nil {
		return state.Admin, false
	}
	return c.Admin.Listen, f.file == "" || strings.HasSuffix(c.Admin.Listen, ":0")
}

func installation(c config.Config) doctor.Installation {
	return doctor.Installation{
		Dir: c.Ledger.Dir, MinFree: uint64(c.Ledger.MinFree), LedgerID: c.Ledger.ID, HighWaterFile: c.Ledger.HighWaterFile,
		CertFile: c.Proxy.CA.CertFile, KeyFile: c.Proxy.CA.KeyFile, TokenFile: c.Admin.TokenFile,
		Descriptors: 2*uint64(max(0, c.Proxy.MaxConnections)) + otherFiles, Now: time.Now(),
	}
}

// configuration is check's word in a line.
func (f *doctorFlags) configuration(cmd *cobra.Command) doctor.Finding {
	const name = "configuration"
	found, err := f.check(cmd, nil)
	switch {
	case err != nil:
		return doctor.Finding{Name: name, Verdict: doctor.Broken, Detail: err.Error(), Fix: "keep-proxy check tells more"}
	case found.failed():
		return doctor.Finding{Name: name, Verdict: doctor.Broken, Detail: "the proxy would not start with it", Fix: "keep-proxy check tells why"}
	case len(found.Rules) > 0:
		remarks := counted(len(found.Rules), "remark")
		return doctor.Finding{Name: name, Verdict: doctor.Advice, Detail: remarks, Fix: "keep-proxy check tells them"}
	}
	return doctor.Finding{Name: name, Verdict: doctor.Sound, Detail: counted(found.Connectors, "connector") + ", " + counted(found.Cases, "case")}
}

// proxy asks the running proxy, or whether one could listen.
func (f *doctorFlags) proxy(cmd *cobra.Command, c config.Config) doctor.Finding {
	const name = "proxy"
	conn, err := f.running(c)
	if err != nil {
		return doctor.Finding{Name: name, Verdict: doctor.Broken, Detail: said(cmd, err), Fix: "keep-proxy health, and the proxy's log"}
	}
	if conn == nil {
		if err := app.CanListen(cmd.Context(), c); err != nil {
			return doctor.Finding{Name: name, Verdict: doctor.Broken, Detail: err.Error(), Fix: "stop the other process, or choose another port"}
		}
		return doctor.Finding{Name: name, Verdict: doctor.Sound, Detail: "none is running; its ports are free"}
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Readyz(cmd.Context()); err != nil {
		detail := "it carries no mutation now: " + said(cmd, err)
		return doctor.Finding{Name: name, Verdict: doctor.Broken, Detail: detail, Fix: "its log, and Trouble in docs/operating.md"}
	}
	return doctor.Finding{Name: name, Verdict: doctor.Sound, Detail: "it runs, and is ready"}
}

// stopping tells how run would end what a command started.
func stopping() doctor.Finding {
	self, err := os.Executable()
	if err != nil {
		return doctor.Finding{Name: "stops", Verdict: doctor.Unknown, Detail: err.Error(), Fix: "run doctor where the program's own file can be found"}
	}
	how, whole := child.Confinement(self, "version")
	if whole {
		return doctor.Finding{Name: "stops", Verdict: doctor.Sound, Detail: how}
	}
	return doctor.Finding{Name: "stops", Verdict: doctor.Advice, Detail: how,
		Fix: "run where a control group of version 2 may be made, such as in a systemd unit with Delegate=yes"}
}

// marks are how verdicts are drawn; they line up.
var marks = map[doctor.Verdict]string{doctor.Sound: "ok", doctor.Advice: "advice", doctor.Unknown: "unknown", doctor.Broken: "BROKEN"}

func writeFindings(w io.Writer, findings []doctor.Finding) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", marks[f.Verdict], f.Name, printable(f.Detail))
		if f.Fix != "" {
			fmt.Fprintf(t, "\t\t→ %s\n", printable(f.Fix))
		}
	}
	return t.Flush()
}
