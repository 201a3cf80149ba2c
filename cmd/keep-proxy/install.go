package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/app"
	"keep-proxy/cli/child"
	"keep-proxy/cli/demo"
	"keep-proxy/cli/doctor"
	"keep-proxy/cli/serving"
	"keep-proxy/config"
)

// newCA makes the command that prints the proxy's own CA.
func newCA() *cobra.Command {
	var path bool
	cmd := configured(&cobra.Command{Use: "ca", Short: "Print the certificate of the proxy's own CA, PEM"},
		func(_ *cobra.Command, c config.Config, _ []string) (map[string]string, error) {
			pem, err := os.ReadFile(c.Proxy.CA.CertFile)
			if err != nil {
				return nil, fmt.Errorf("ca: %w; it is written when the proxy starts first", err)
			}
			return map[string]string{"file": c.Proxy.CA.CertFile, "pem": string(pem)}, nil
		}, func(p *page, ca map[string]string) {
			if path {
				p.sayf("%s", ca["file"])
				return
			}
			p.WriteString(ca["pem"])
		})
	cmd.Flags().BoolVar(&path, "path", false, "print the file's path instead")
	cmd.Flags().Lookup("json").Usage = "both as JSON"
	return cmd
}

// healthTimeout bounds a probe.
const healthTimeout = 5 * time.Second

// newHealth makes the probe for containers.
func newHealth() *cobra.Command {
	a := adminFlags{anonymous: true}
	cmd := &cobra.Command{Use: "health", Short: "Exit 0 if the proxy would carry a mutation now"}
	a.bind(jsonFlag(cmd))
	live := cmd.Flags().Bool("live", false, "ask only whether the process answers")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
		defer cancel()
		c, err := a.reach(cmd)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		ask := c.Readyz
		if *live {
			ask = c.Healthz
		}
		err = ask(ctx)
		if !asJSON(cmd) {
			if err != nil {
				err = fmt.Errorf("health: %w", err)
			}
			return err
		}
		answer, code := map[string]any{"ok": err == nil}, codeOK
		if err != nil {
			answer["detail"], code = said(nil, err), codeFailed
		}
		return errors.Join(quietly(code), writeJSON(cmd.OutOrStdout(), answer))
	}
	return cmd
}

// otherFiles are open besides the connections, of which each client's can take one to an
// upstream.
const otherFiles = 1_000

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	adminFlags

	inside  bool
	targets []string
}

// newDoctor makes the command that examines an installation, or a sandbox.
func newDoctor() *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor [--inside] [--target HOST:PORT]…",
		Short: "Examine the installation, or a sandbox from inside",
		Long: "Outside a run it examines data folder, disk, clocks, CA, token, configuration, proxy, and whether run --isolate\n" +
			"works here. Inside a run, where KEEP_RUN_ID is set, it examines whether a client goes through the proxy, trusts\n" +
			"it, and can get past it to a target. The target gets a connection without a byte. Exits 1 if anything is broken.\n\n" +
			"  keep-proxy run --workflow doctor --once -- keep-proxy doctor --target api.stripe.com:443",
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := f.examine(cmd)
			if err != nil {
				return err
			}
			for i := range findings {
				findings[i].Fix = onSameLedger(again(cmd), findings[i].Fix)
			}
			if err = show(cmd, findings, showFindings); err == nil && doctor.Failed(findings) {
				err = quietly(codeFailed)
			}
			return err
		},
	}
	f.bind(jsonFlag(cmd))
	cmd.Flags().BoolVar(&f.inside, "inside", false, "examine the sandbox that this command runs in (the default within a run)")
	cmd.Flags().StringArrayVar(&f.targets, "target", nil, "host:port that must not be reached but through the proxy; may be repeated")
	return cmd
}

// checkTargets refuses what can't be connected to in any network. It would look as if it were out of reach.
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
		s := doctor.Sandbox{Getenv: os.Getenv, Interfaces: net.Interfaces, Targets: f.targets, Unknown: err}
		if err == nil {
			s.TokenFiles = []string{c.Admin.TokenFile}
			s.Admin, s.AdminGuessed = f.adminHere(c)
		}
		if file := tokenFile(c, nil); file != c.Admin.TokenFile {
			s.HostToken = file
		}
		return s.Examine(cmd.Context()), nil
	}
	if len(f.targets) > 0 {
		return nil, usage("doctor: --target is for the inside of a sandbox; run it under keep-proxy run, or with --inside")
	}
	if problems, ok := errors.AsType[*config.Error](err); ok {
		return []doctor.Finding{doctor.Broken.Of("configuration", problems.Error(), "keep-proxy check tells all of it")}, nil
	}
	if err != nil {
		return nil, err
	}
	findings := append([]doctor.Finding{f.configuration(cmd)}, installation(c).Examine()...)
	return append(findings, f.proxy(cmd, c), stopping(), isolating(c.Isolate.Required)), nil
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
	const name, fix = "configuration", "keep-proxy check tells all of it"
	found, err := f.check(cmd, nil)
	switch {
	case err != nil:
		return doctor.Broken.Of(name, err.Error(), fix)
	case found.failed():
		return doctor.Broken.Of(name, "the proxy would not start with it", fix)
	case len(found.Rules) > 0:
		return doctor.Advice.Of(name, counted(len(found.Rules), "remark"), fix)
	}
	return doctor.Sound.Of(name, counted(found.Connectors, "connector")+", "+counted(found.Cases, "case"), "")
}

// proxy asks the running proxy, or whether one could listen.
func (f *doctorFlags) proxy(cmd *cobra.Command, c config.Config) doctor.Finding {
	const name = "proxy"
	conn, err := f.running(c)
	if err != nil {
		return doctor.Broken.Of(name, said(cmd, err), "keep-proxy health, and the proxy's log")
	}
	if conn == nil {
		if err := app.CanListen(cmd.Context(), c); err != nil {
			return doctor.Broken.Of(name, err.Error(), "stop the other process, or choose another port")
		}
		return doctor.Sound.Of(name, "none is running; its ports are free", "")
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Readyz(cmd.Context()); err != nil {
		return doctor.Broken.Of(name, "it carries no mutation now: "+said(cmd, err), "its log, and Trouble in docs/operating.md")
	}
	return doctor.Sound.Of(name, "it runs, and is ready", "")
}

// stopping tells how run would end what a command started.
func stopping() doctor.Finding {
	const name = "stops"
	self, err := os.Executable()
	if err != nil {
		return doctor.Unknown.Of(name, err.Error(), "run doctor where the program's own file can be found")
	}
	how, whole := child.Confinement(self, "version")
	if whole {
		return doctor.Sound.Of(name, how, "")
	}
	return doctor.Advice.Of(name, how, "run where a control group of version 2 may be made, such as in a systemd unit with Delegate=yes")
}

// marks are how verdicts are drawn.
var marks = map[doctor.Verdict]string{doctor.Sound: "ok", doctor.Advice: "advice", doctor.Unknown: "unknown", doctor.Broken: "BROKEN"}

func showFindings(p *page, findings []doctor.Finding) {
	var lines []string
	for _, f := range findings {
		lines = append(lines, marks[f.Verdict]+"\t"+f.Name+"\t"+printable(f.Detail))
		if f.Fix != "" {
			lines = append(lines, "\t\t→ "+printable(f.Fix))
		}
	}
	p.rows(lines...)
}

// newDemo makes the command that plays what the program is for.
func newDemo() *cobra.Command {
	var exit, builtIn bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play lost answers and a killed proxy against a bank on loopback",
		Long: "Four acts, each with the bank's own books at its end. Then the bank and the proxy stay up for you\n" +
			"to try, until Ctrl-C. Everything is on 127.0.0.1 and in a temporary folder, which is removed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			o := demo.Options{Self: self, Out: cmd.OutOrStdout(), BuiltIn: builtIn}
			if !exit {
				o.Stay = stay(cmd.OutOrStdout(), self)
			}
			err = demo.Run(ctx, o)
			if errors.Is(err, context.Canceled) {
				return quietly(128 + int(syscall.SIGINT))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&exit, "exit", false, "end after the last act")
	cmd.Flags().BoolVar(&builtIn, "built-in-client", false, "use the built-in client although sh and curl are there")
	return cmd
}

// stay tells how to use what still runs, and waits.
func stay(out io.Writer, self string) func(context.Context, string, string) error {
	return func(ctx context.Context, config, bank string) error {
		fmt.Fprintf(out, "\nBank and proxy stay up until Ctrl-C. From another terminal:\n\n"+
			"  %s run --config %s --workflow try --item 1 --keep-open -- \\\n"+
			"    curl -sS -i -H 'Content-Type: application/json' \\\n"+
			"    -d '{\"from\":\"alice\",\"to\":\"bob\",\"amount\":4200,\"currency\":\"EUR\",\"reference\":\"try-1\"}' %s/transfers\n\n"+
			"Run it twice: the second answer is the recorded one (Keep-Replayed), and bob is paid once.\n",
			quoted(self), quoted(config), bank)
		<-ctx.Done()
		return nil
	}
}

// newDemoClient makes the demo's script for machines without sh or curl.
func newDemoClient() *cobra.Command {
	return &cobra.Command{
		Use: demo.ClientCommand, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Client(cmd.Context(), os.Getenv, cmd.OutOrStdout())
		},
	}
}
