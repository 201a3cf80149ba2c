package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/app"
	"keep-proxy/cli/demo"
	"keep-proxy/cli/managed"
	"keep-proxy/cli/serving"
	"keep-proxy/config"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	settings

	run      ownRun
	restored string
	actor    string
	untilEOF bool
}

// newServe makes the command that runs the sidecar.
func newServe() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the proxy until SIGTERM or Ctrl-C",
		Long: "Runs the proxy. Without any configuration its ledger is in $XDG_STATE_HOME/keep-proxy, it listens\n" +
			"on 127.0.0.1:8080, and its API on 127.0.0.1:8081. SIGTERM and SIGINT let what is being sent end and be\n" +
			"recorded. A second one ends the program at once, as a crash does: nothing is lost. A changed configuration\n" +
			"or connector file, and SIGHUP, reload the connectors: all of them or, on any error, none.\n\n" +
			"With --workflow and --item it has one run, for a sidecar with one script beside it. It prints that run's\n" +
			"proxy address. The run ends with it, and the item stays open.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.run.checkFlags(); err != nil {
				return err
			}
			c, err := f.load(cmd)
			if err != nil {
				return err
			}
			log, lines := newLog(c.Log, cmd.ErrOrStderr())
			w := words{log: log, lines: lines, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
			return w.end(cmd, f.serve(cmd, c, w))
		},
	}
	f.bind(cmd)
	f.run.bind(cmd)
	cmd.Flags().StringSlice("listen", nil, "address of the proxy, several with commas (proxy.listen)")
	cmd.Flags().String("admin-listen", "", "address of the admin API (admin.listen)")
	cmd.Flags().StringVar(&f.restored, "restored", "", "the ledger is a copy of this moment (RFC 3339), put back on purpose")
	cmd.Flags().StringVar(&f.actor, "actor", person(), "who puts the copy back (with --restored)")
	cmd.Flags().BoolVar(&f.untilEOF, demo.UntilEOFFlag, false, "stop when standard input ends")
	_ = cmd.Flags().MarkHidden(demo.UntilEOFFlag) // The flag was just made.
	f.key("listen", "proxy.listen")
	f.key("admin-listen", "admin.listen")
	return cmd
}

// since reads the moment of a restored copy.
func (f *serveFlags) since() (time.Time, error) {
	if f.restored == "" {
		return time.Time{}, nil
	}
	since, err := time.Parse(time.RFC3339, f.restored)
	if err != nil {
		err = usage("serve: --restored %q is no time of RFC 3339; give the moment at which the copy was made, as in 2026-01-31T15:04:05Z", f.restored)
	} else if since.After(time.Now()) {
		err = usage("serve: --restored %s is still to come; give the moment at which the copy was made", f.restored)
	}
	return since, err
}

// start starts the program, and announces it.
func (f *serveFlags) start(ctx context.Context, cmd *cobra.Command, c config.Config, w words) (*app.App, *serving.Announcement, error) {
	since, err := f.since()
	if err != nil {
		return nil, nil, err
	}
	if err := ensureDir(c); err != nil {
		return nil, nil, err
	}
	app.TuneMemory(ctx)
	a, err := app.New(ctx, app.Options{
		Config: c, Version: version(), Log: w.log, SetLevel: zerolog.SetGlobalLevel,
		Trace: true, Watch: true, ConfigFile: f.file, Flags: f.anywhere(), Restored: since,
		Operator: f.actor,
		Load:     func() (config.Config, error) { return f.load(cmd) },
		// Who has the ledger of a folder that nobody serves opens or looks at it.
		Passing: func() bool {
			state, err := serving.Find(c.Ledger.Dir)
			return err == nil && state == nil
		},
	})
	if err != nil {
		return nil, nil, err
	}
	if err := a.Start(ctx); err != nil {
		return nil, nil, err
	}
	announced, err := serving.Announce(c.Ledger.Dir, stateOf(a, c, false))
	if err != nil {
		return nil, nil, errors.Join(err, stop(ctx, a))
	}
	return a, announced, nil
}

func (f *serveFlags) serve(cmd *cobra.Command, c config.Config, w words) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if f.untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, cmd.InOrStdin())
			cancel()
		}()
	}
	outliveReaders()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	a, announced, err := f.start(ctx, cmd, c, w)
	if err != nil {
		return err
	}
	if err := w.greet(a, c, f.settings); err != nil {
		return errors.Join(err, announced.Withdraw(), stop(ctx, a))
	}
	// What is in flight ends by itself: its context isn't ended.
	waiting, end := context.WithCancel(ctx)
	defer end()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	go reloadOn(waiting, hangups, a)
	go func() {
		<-signals
		end()
		// What is in flight may take as long as its deadline: who can't wait says so.
		sig, _ := (<-signals).(syscall.Signal)
		w.flush()
		os.Exit(128 + int(sig))
	}()
	kept := make(chan error, 1)
	go func() {
		err := f.run.keep(waiting, a, w, again(cmd))
		if kept <- err; err != nil {
			end()
		}
	}()
	err = a.Wait(waiting)
	end()
	err = errors.Join(err, <-kept)
	// A stop that is not hurried lasts as long as the longest sending.
	stopping, done := context.WithTimeout(context.WithoutCancel(ctx), c.Proxy.Timeouts.Total+stopTimeout)
	defer done()
	return errors.Join(err, announced.Withdraw(), a.Stop(stopping))
}

// reloadOn reloads at each signal until ctx ends. How it went is logged, and told by
// status.
func reloadOn(ctx context.Context, signals <-chan os.Signal, a *app.App) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			_, _ = a.Reload(ctx, "signal")
		}
	}
}

// stateOf is what a program announces in its data folder.
func stateOf(a *app.App, c config.Config, embedded bool) serving.State {
	return serving.State{
		PID: os.Getpid(), Admin: a.AdminURL(), Proxy: a.ProxyAddr(), TokenFile: c.Admin.TokenFile,
		Certificate: c.Admin.TLS.CertFile, Embedded: embedded,
	}
}

// words are what serve tells: to a person, or only by its log where that is JSON.
type words struct {
	log zerolog.Logger
	// lines gathers the log if it is JSON.
	lines     *jsonLog
	out, errs io.Writer
}

// greet tells what runs and how to use it.
func (w words) greet(a *app.App, c config.Config, s settings) error {
	if w.lines == nil {
		return showPage(w.out, "", func(p *page) {
			p.facts(
				"ledger", a.LedgerID()+" in "+shown(c.Ledger.Dir),
				"proxy", a.ProxyAddr(),
				"admin", a.AdminURL()+", token in "+shown(c.Admin.TokenFile),
				"public", c.Admin.PublicURL,
				"health", a.HealthAddr(),
				"run", "keep-proxy run"+s.anywhere()+" --workflow NAME --item ITEM -- COMMAND",
			)
		})
	}
	file := s.file
	if whole, err := filepath.Abs(file); file != "" && err == nil {
		file = whole
	}
	var first bytes.Buffer
	log := w.log.Output(&first)
	line := log.Log().Str(zerolog.LevelFieldName, zerolog.LevelInfoValue) // whatever the level
	for _, field := range [][2]string{
		{"version", version()}, {"ledger", a.LedgerID()}, {"ledger_dir", app.LedgerDir(c)}, {"high_water_file", c.Ledger.HighWaterFile},
		{"proxy", a.ProxyAddr()}, {"admin", a.AdminURL()}, {"token_file", c.Admin.TokenFile}, {"public_url", c.Admin.PublicURL},
		{"health", a.HealthAddr()}, {"config_file", file},
	} {
		if field[1] != "" {
			line = line.Str(field[0], field[1])
		}
	}
	line.Msg("serving")
	w.lines.begin(first.Bytes())
	return nil
}

// run tells where a script finds the proxy of the one run. The address may hold its token, so that no log has it.
func (w words) run(r *wire.OpenedRun) error {
	if w.lines == nil {
		return showPage(w.out, "", func(p *page) { p.facts("run", r.ID, "address", r.ProxyURL) })
	}
	return writeLine(w.out, map[string]string{"run": r.ID, "address": r.ProxyURL})
}

// say tells why there is no run yet.
func (w words) say(text string) {
	if w.lines == nil {
		saying(w.errs)("%s", text)
		return
	}
	w.log.Warn().Msg(text)
}

// flush writes what the log has left.
func (w words) flush() {
	if w.lines != nil {
		w.lines.flush()
	}
}

// end tells why serve ended, unless the program tells it.
func (w words) end(cmd *cobra.Command, err error) error {
	defer w.flush()
	if text := sentence(cmd, err); w.lines != nil && text != "" {
		w.log.Error().Msg(text)
		return told(err)
	}
	return err
}

// ownRun is the one run of a sidecar that is given a workflow and an item.
type ownRun struct{ openFlags }

const (
	// retryOpen is the time between two tries to open a run in a scope that stands still.
	retryOpen = time.Second
	// endTimeout bounds the ending of the run at a shutdown.
	endTimeout = 5 * time.Second
)

// bind adds the flags that make sense for a run without a command.
func (o *ownRun) bind(cmd *cobra.Command) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&o.Workflow, "workflow", "", "open one run, of this workflow, and print its proxy's address:\nfor a sidecar that has one script beside it")
	f.StringVar(&o.Item, "item", "", "the item of that run")
	f.IntVar(&o.Attempt, "attempt", 0, "the item's current attempt (default that)")
	f.StringVar(&o.IfDone, "if-done", "", "with an item that is done or skipped: fail, or run, reading only (default fail)")
	f.BoolVar(&o.Listener, "listener", false, "give that run the address proxy.run_listen, which takes no credentials")
	o.flags = f
	cmd.Flags().AddFlagSet(f)
}

// checkFlags refuses what can't be opened.
func (o *ownRun) checkFlags() error {
	switch name := o.given(); {
	case o.Workflow == "" && name != "":
		return usage("serve: --%s goes with --workflow, for a sidecar with one run", name)
	case o.Workflow == "":
		return nil
	case o.IfDone == ifDoneSkip:
		return usage("serve: --if-done skip needs a command that is skipped; give fail or run")
	case o.Item == "":
		return usage("serve: --item is missing; name the unit of work of the one run") // It knows no --once.
	}
	return o.check("serve")
}

// opensWhen says what is waited for, by the name of the refusal.
var opensWhen = map[string]string{
	"blocked":  "The run is opened when that is resolved; see keep-proxy status",
	"draining": "The run is opened after keep-proxy resume",
}

// open opens the run. An earlier run of the item is taken over. Its sidecar is gone, as a ledger serves one at a
// time. While the scope is stopped it waits: this very process finds out what is unknown, and is told to resume.
func (o *ownRun) open(ctx context.Context, c *client.Client, say func(string)) (*wire.OpenedRun, error) {
	q := o.OpenRun
	q.Takeover, q.IfDone = true, cmp.Or(q.IfDone, ifDoneFail)
	for told := false; ; told = true {
		opened, err := c.OpenRun(ctx, q, rand.Text())
		if err == nil {
			return opened, nil
		}
		waits := ""
		problem, refused := errors.AsType[*client.Problem](err)
		if refused {
			waits = opensWhen[problem.Name()]
		}
		if waits == "" {
			return nil, noRun(openError(err))
		}
		if !told {
			say(commandsFor.Replace(problem.Detail) + " " + waits)
		}
		select {
		case <-ctx.Done():
			return nil, noRun(openError(err))
		case <-time.After(retryOpen):
		}
	}
}

// keep opens the run, tells its address, and keeps the run until ctx ends. It returns at
// once with an error if none can be opened.
func (o *ownRun) keep(ctx context.Context, a *app.App, w words, flags string) error {
	if o.Workflow == "" {
		return nil
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	opened, err := o.open(ctx, c, func(text string) { w.say(onSameLedger(flags, text)) })
	if ctx.Err() != nil {
		return nil // Nobody waits for the run any more.
	}
	if err != nil {
		return err
	}
	if err := w.run(opened); err != nil {
		return err
	}
	beat := time.NewTicker(managed.Beat(opened.Run))
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			// One that fails is followed by others. A run that is over stays so.
			_, _ = c.Heartbeat(ctx, opened.ID, wire.Heartbeat{})
		case <-ctx.Done():
			// The item stays open: a sidecar doesn't know what became of the script beside it. A run that isn't ended
			// in time is taken over at the next start.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
			defer cancel()
			_, _ = c.EndRun(ctx, opened.ID, wire.EndRun{Reason: "its sidecar was stopped", Actor: person()})
			return nil
		}
	}
}
