package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/app"
	"keep-proxy/cli/demo"
	"keep-proxy/cli/serving"
	"keep-proxy/config"
)

// newServe makes the command that runs the sidecar.
func newServe() *cobra.Command {
	var s settings
	var listen []string
	var adminListen string
	var untilEOF bool
	var restored string
	var own ownRun
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the proxy until SIGTERM or Ctrl-C",
		Long: "Runs the proxy. Without any configuration its ledger is in $XDG_STATE_HOME/keep-proxy, it listens\n" +
			"on 127.0.0.1:8080, and its API on 127.0.0.1:8081. SIGTERM and SIGINT let what is being sent end and be\n" +
			"recorded. A second one ends the program at once, as a crash does: nothing is lost. A changed configuration\n" +
			"or connector file, and SIGHUP, reload the connectors: all of them or, on any error, none.\n\n" +
			"With --workflow and --item it has one run, for a sidecar with one script beside it. It prints that run's\n" +
			"proxy address. The run ends with it, and the item stays open.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := own.checkFlags(cmd); err != nil {
				return err
			}
			c, err := s.load(cmd)
			if err != nil {
				return err
			}
			since, err := parseSince(restored)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if untilEOF {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				defer cancel()
				go func() {
					_, _ = io.Copy(io.Discard, cmd.InOrStdin())
					cancel()
				}()
			}
			own.again = again(cmd)
			load := func() (config.Config, error) { return s.load(cmd) }
			log, lines := newLog(c.Log, cmd.ErrOrStderr())
			w := words{log: log, lines: lines, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
			return w.end(cmd, serve(ctx, c, sidecar{s, since, own, load}, w))
		},
	}
	s.bind(cmd)
	own.bind(cmd)
	cmd.Flags().StringSliceVar(&listen, "listen", nil, "address of the proxy, several with commas (proxy.listen)")
	cmd.Flags().StringVar(&adminListen, "admin-listen", "", "address of the admin API (admin.listen)")
	cmd.Flags().StringVar(&restored, "restored", "", "the ledger is a copy of this moment (RFC 3339), put back on purpose")
	cmd.Flags().BoolVar(&untilEOF, demo.UntilEOFFlag, false, "stop when standard input ends")
	_ = cmd.Flags().MarkHidden(demo.UntilEOFFlag) // The flag was just made.
	s.key("listen", "proxy.listen")
	s.key("admin-listen", "admin.listen")
	return cmd
}

// unserved reports whether nobody serves a data folder: who has its ledger opens or looks at it.
func unserved(dir string) bool {
	state, err := serving.Find(dir)
	return err == nil && state == nil
}

// parseSince reads the moment of a restored copy.
func parseSince(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	since, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return since, usage("serve: --restored %q is no time of RFC 3339; give the moment at which the copy was made, as in 2026-01-31T15:04:05Z", text)
	}
	if since.After(time.Now()) {
		return since, usage("serve: --restored %s is still to come; give the moment at which the copy was made", text)
	}
	return since, nil
}

// sidecar is what serve was asked for besides its configuration.
type sidecar struct {
	settings settings
	restored time.Time
	run      ownRun
	load     func() (config.Config, error)
}

func serve(ctx context.Context, c config.Config, s sidecar, w words) error {
	outliveReaders()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	if err := ensureDir(c); err != nil {
		return err
	}
	app.TuneMemory(ctx)
	a, err := app.New(ctx, app.Options{
		Config: c, Version: version(), Log: w.log, Load: s.load, Trace: true, Watch: true, ConfigFile: s.settings.file,
		Flags: s.settings.anywhere(), Restored: s.restored, Operator: person(), Passing: func() bool { return unserved(c.Ledger.Dir) },
	})
	if err != nil {
		return err
	}
	if err := a.Start(ctx); err != nil {
		return err
	}
	announced, err := serving.Announce(c.Ledger.Dir, stateOf(a, c, false))
	if err != nil {
		return errors.Join(err, stop(ctx, a))
	}
	if err := w.greet(a, c, s.settings); err != nil {
		return errors.Join(err, announced.Withdraw(), stop(ctx, a))
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	go reloadOn(waiting, hangups, a)
	go func() {
		<-signals
		cancel()
		// What is in flight may take as long as its deadline: who can't wait says so.
		sig, _ := (<-signals).(syscall.Signal)
		w.flush()
		os.Exit(128 + int(sig))
	}()
	kept := make(chan error, 1)
	if s.run.workflow == "" {
		kept <- nil
	} else {
		go func() {
			err := s.run.keep(waiting, a, w)
			if kept <- err; err != nil {
				cancel()
			}
		}()
	}
	err = a.Wait(waiting)
	cancel()
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

// notes writes what a program has to say at its start.
func notes(w io.Writer) func(string) {
	return func(text string) { fmt.Fprintln(w, "keep-proxy:", printable(text)) }
}
