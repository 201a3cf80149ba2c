package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/cli/child"
	"keep-proxy/cli/managed"
	"keep-proxy/cli/netns"
	"keep-proxy/config"
)

// extraWait is what a run waits for reconciliation beyond settle.
const extraWait = 5 * time.Minute

// runFlags are the flags of run.
type runFlags struct {
	adminFlags
	openFlags
	isolateFlags

	wait     time.Duration
	result   string
	user     string
	keepOpen bool
}

// newRun makes the command that runs a script as a managed run.
func newRun() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run --workflow W (--item I | --once | --items many) [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a command behind the proxy, as one managed run",
		Long: "Opens a run, and starts the command with the proxy in its environment. It ends the command when the run is\n" +
			"stopped, and finishes the run when the command has ended. Without a running proxy it embeds one, which\n" +
			"stays until the last run that joined it has ended.\n\n" +
			"An item whose command ended with 0 is done: its command is not started again.\n\n" +
			"--isolate takes a user namespace and a network namespace. AppArmor (a profile without \"userns,\"), seccomp or\n" +
			"kernel.unprivileged_userns_clone may forbid them; keep-proxy doctor tells. Files and Unix sockets stay reachable.\n\n" +
			"Exit code: the command's own; 75 stopped on an unknown outcome, 76 the item needs attention,\n" +
			"77 aborted on a failed mutation or a refused request, or without required traffic, 78 no run could be\n" +
			"opened; 126 and 127 as a shell's.\n\n" +
			"A configuration can be as small as this:\n\n" +
			"  ledger: {dir: ./keep}\n" +
			"  connectors: {dirs: [./connectors]}\n" +
			"  proxy: {egress: {allow: [HOST]}}     # for an API at a private address only",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("run: the command is missing; write it after --, see %s --help", cmd.CommandPath())
			}
			return nil
		},
		PreRunE: f.refuse,
		RunE:    f.run,
	}
	cmd.Flags().SetInterspersed(false)
	f.adminFlags.bind(cmd)
	f.openFlags.bind(cmd)
	f.isolateFlags.bind(cmd)
	cmd.Flags().DurationVar(&f.wait, "wait", 0,
		"how long to wait at the start while an outcome that stops the run is being found out; 0 for\n"+
			"not at all (the default with a running proxy). With a proxy of its own also at the end\n(default settle + 5m)")
	cmd.Flags().BoolVar(&f.keepOpen, "keep-open", false, "leave the item open when the command succeeds")
	cmd.Flags().BoolVar(&f.RequireTraffic, "require-traffic", false,
		"without one request through the proxy the run isn't done, whatever the command\nreturned, and its item is failed")
	cmd.Flags().StringVar(&f.result, "result", "", "write what became of the run to this file, as JSON; one that is there is removed first")
	cmd.Flags().StringVar(&f.user, "user", "",
		"run the command as this user (a name, a number, or UID:GID), who can't read the\noperator's token; takes root, on Linux")
	return cmd
}

// refuse refuses what can't be asked for.
func (f *runFlags) refuse(cmd *cobra.Command, _ []string) error {
	if cmd.Flags().Changed("user") && f.user == "" {
		return usage("run: --user is empty; name a user, or leave it out")
	}
	if f.wait < 0 {
		return usage("run: --wait %s is negative; 0 is for not at all", f.wait)
	}
	if err := f.isolateFlags.check(); err != nil {
		return err
	}
	return f.openFlags.check("run")
}

// run opens, runs, finishes, and reports.
func (f *runFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.clearResult(); err != nil {
		return err
	}
	outliveReaders()
	signals := relaySignals(cmd.Context())
	defer signals.close()
	verdict, err := f.attempt(cmd, args, signals)
	verdict, err = reported(cmd, verdict, err)
	if writeErr := f.writeResult(verdict); writeErr != nil {
		return errors.Join(err, &exitError{code: max(verdict.Code, codeFailed), err: writeErr})
	}
	if err != nil {
		return err
	}
	return quietly(verdict.Code)
}

// attempt is one run from its opening to its end.
func (f *runFlags) attempt(cmd *cobra.Command, args []string, signals *relay) (managed.Verdict, error) {
	say := saying(cmd.ErrOrStderr())
	c, err := f.load(cmd)
	if err != nil {
		return managed.Verdict{}, noRun(err)
	}
	f.look()
	h, err := f.host(signals.ctx, cmd, c)
	if errors.Is(err, context.Canceled) && signals.ctx.Err() != nil {
		err = errSignalled
	}
	if err != nil {
		return managed.Verdict{}, noRun(err)
	}
	wait := f.wait
	if h.embedded && !cmd.Flags().Changed("wait") {
		wait = c.Reconcile.Settle + extraWait
	}
	verdict, err := f.inside(cmd, h, args, signals, wait)
	wasTold := false
	left := h.leave(signals.ctx, func() {
		// Others may take hours: that no run was opened is said before that.
		if text := sentence(cmd, err); text != "" {
			wasTold = true
			say("%s", text)
		}
		say("waiting for other runs that use this proxy; Ctrl-C ends them")
	})
	if verdict.Run != "" && h.gone() {
		left = errors.Join(left, f.endOrphan(signals.ctx, cmd, c, verdict.Run))
	}
	if wasTold && left == nil {
		return verdict, told(err)
	}
	return verdict, errors.Join(err, left)
}

// errSignalled says that somebody ended us while we waited: nothing is wrong with the work.
var errSignalled = errors.New("a signal came before the command was started")

// inside is what happens while there is a proxy.
func (f *runFlags) inside(cmd *cobra.Command, h *host, args []string, signals *relay, wait time.Duration) (managed.Verdict, error) {
	say := f.advising(cmd)
	user, err := otherUser(f.user, h)
	if err != nil {
		return managed.Verdict{}, noRun(err)
	}
	if err := f.possible(h.config); err != nil {
		return managed.Verdict{}, noRun(err)
	}
	f.Reach = f.targets(h.config)
	scope, began := managed.Scope{Workflow: f.Workflow, Item: f.Item}, time.Now()
	if h.embedded {
		if err := settle(signals.ctx, h, scope, wait, say); err != nil {
			return managed.Verdict{}, noRun(err)
		}
	}
	if signals.ctx.Err() != nil {
		return managed.Verdict{}, noRun(errSignalled)
	}
	opened, err := f.open(signals.ctx, h, wait, began, say)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Name() == "item-done" && f.IfDone != ifDoneFail {
		say("%s The command was not started; keep-proxy items reopen or keep-proxy items new-attempt allows more", p.Detail)
		return managed.Verdict{Skipped: true, Reason: p.Detail, Retry: managed.RetryNo}, nil
	}
	if err != nil {
		return managed.Verdict{}, noRun(openError(err))
	}
	if user == nil {
		untrusted(say, opened.Env)
	}
	session := &managed.Session{
		API: h.Client, Run: opened.Run, TTL: time.Duration(f.TTL), KeepOpen: f.keepOpen, Say: say, Gone: h.gone,
		Words: func(err error) string { return strings.Replace(said(cmd, err), "--run ID", "--run "+opened.Run.ID, 1) },
	}
	inner, err := f.isolation(cmd, h, opened)
	if err != nil {
		session.Finish(signals.ctx, codeFailed)
		return managed.Verdict{}, noRun(err)
	}
	var p *child.Process
	done, heard := func() {}, func() {}
	if h.own == nil {
		heard = hearRefused(signals.ctx, h.Client, opened.Run.ID, say)
	}
	// A signal that comes while the command is being started is for the command, too.
	signals.toChild(func() {
		if signals.ctx.Err() != nil {
			err = noRun(errSignalled)
			return
		}
		if p, done, err = start(cmd, args, opened.Env, h.config, user, inner); err == nil {
			inner.begin(p.Network())
			session.Watch(signals.ctx, p, signals.child)
		}
	})
	defer func() { done() }()
	if err != nil {
		session.Finish(signals.ctx, codeFailed)
		return managed.Verdict{}, err
	}
	verdict := session.Finish(signals.ctx, p.Code())
	inner.close()
	heard()
	tellEnd(say, session, h, verdict, opened.Run.ItemDone, inner)
	if h.embedded && verdict.Code == managed.CodeUnknown && !h.gone() {
		// What it stops may be less than what this run's like is stopped by; nobody else asks.
		scope.Mutation = verdict.Mutation
		if err := settle(signals.ctx, h, scope, wait, say); err != nil {
			return verdict, fmt.Errorf("what else is unknown can't be asked: %w", err)
		}
	}
	return verdict, nil
}

// tellEnd says how the run ended.
func tellEnd(say func(string, ...any), session *managed.Session, h *host, v managed.Verdict, itemDone bool, inner *isolation) {
	tellRefused(say, session.Run.Refused)
	if n := session.Run.Observed; n > 0 {
		say("%s to hosts of no connector went through, and may happen again in a re-run; see keep-proxy tail --observed --run %s",
			counted(n, "request"), session.Run.ID)
	}
	if !session.Run.Traffic && managed.Ended(session.Run.State) && !h.gone() && inner == nil {
		say("no request came through the proxy. If the command sent any, its client ignores HTTP_PROXY and HTTPS_PROXY: " +
			"see docs/clients.md, or run keep-proxy doctor in the command's place")
	}
	tell(say, v, itemDone)
	inner.tell(say)
}

// endOrphan ends a run whose proxy was killed with the run that embedded it. Else its item would be busy until the time
// limit. What the command asked for meanwhile never came to a proxy, so that the run isn't done.
func (f *runFlags) endOrphan(ctx context.Context, cmd *cobra.Command, c config.Config, id string) error {
	h, err := f.host(ctx, cmd, c)
	if err != nil {
		return fmt.Errorf("the run could not be ended: %w", err)
	}
	_, err = h.FinishRun(ctx, id, wire.FinishRun{Outcome: "failed"})
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Name() == "run-ended" {
		err = nil
	}
	return errors.Join(err, h.leave(ctx, func() {}))
}

// open opens the run. A proxy of its own has had its time to wait already (settle). A run of --once has what is left
// of it: a status doesn't tell what stops only such runs.
func (f *runFlags) open(
	ctx context.Context, h *host, wait time.Duration, began time.Time, say func(string, ...any),
) (*wire.OpenedRun, error) {
	switch {
	case h.embedded && f.Once:
		wait = max(0, wait-time.Since(began).Round(time.Second))
	case h.embedded:
		wait = 0
	}
	key, until := rand.Text(), time.Now().Add(wait)
	return managed.OpenSettled(ctx, func(ctx context.Context) (*wire.OpenedRun, error) {
		return f.surely(ctx, h.Client, key, say)
	}, wait, func(p *client.Problem) {
		if s, err := managed.Look(ctx, h.Client, managed.Scope{Workflow: f.Workflow, Item: f.Item, Mutation: p.Mutation.ID}); err == nil && s.Pending > 0 {
			awaiting(say, s, until)
			return
		}
		say("the outcome of %s is unknown; waiting until it is found out (at most %s)", p.Mutation.ID, wait)
	})
}

// awaiting says what is waited for, how often it was asked about, and until when.
func awaiting(say func(string, ...any), s managed.Standing, until time.Time) {
	say("waiting until it is known whether \"%s\" took effect (%s, %s): %s; until %s at the latest",
		s.Oldest.Target, s.Oldest.Mutation, others(s.Pending), tried(s.Oldest), stamp(until))
}

// settle gives reconciliation its time.
func settle(ctx context.Context, h *host, scope managed.Scope, wait time.Duration, say func(string, ...any)) error {
	if st, err := h.Status(ctx); err == nil && halted(st.Mode) {
		// Nothing is asked about, and no run will be opened, which says why.
		return nil
	}
	until := time.Now().Add(wait)
	standing, err := managed.AwaitSettled(ctx, h.Client, scope, wait, func(s managed.Standing) {
		awaiting(say, s, until)
	})
	switch {
	case err != nil:
	case standing.Pending > 0:
		say("what became of %s of workflow %s is still unknown, and asked about only while a proxy runs: "+
			"run the same command again, or keep keep-proxy serve up. The oldest is %s: %s",
			counted(standing.Pending, "mutation"), scope.Workflow, standing.Oldest.Mutation, standing.Oldest.Reason)
	case standing.Waiting > 0:
		say("in workflow %s %s for a person; see keep-proxy resolve", scope.Workflow, waits(standing.Waiting))
	case scope.Mutation != "":
		say("settled: run the same command again")
	}
	return err
}

// waits says that mutations wait.
func waits(n int) string {
	if n == 1 {
		return "1 mutation waits"
	}
	return fmt.Sprintf("%d mutations wait", n)
}

// others says how many mutations are unknown.
func others(pending int) string {
	if pending == 1 {
		return "the only one unknown"
	}
	return fmt.Sprintf("one of %d unknown", pending)
}

// tried says how often the API was asked, and when it is asked next.
func tried(s wire.Stopped) string {
	next := "now"
	if !s.NextTryAt.IsZero() {
		next = "at " + stamp(s.NextTryAt)
	}
	return fmt.Sprintf("the API was asked %s, and is asked next %s", counted(s.Tries, "time"), next)
}

// start starts the command on our own standard streams, with the run's variables; done is called after its end.
func start(
	cmd *cobra.Command, args []string, run map[string]string, c config.Config, user *child.User, inner *isolation,
) (p *child.Process, done func(), err error) {
	in, _ := cmd.InOrStdin().(*os.File)
	out, _ := cmd.OutOrStdout().(*os.File)
	errs, _ := cmd.ErrOrStderr().(*os.File)
	done = func() {}
	if in == nil || out == nil || errs == nil {
		return nil, done, errors.New("run: the standard streams are no files that a command could be given")
	}
	if user != nil {
		remove, err := trustFor(run, user)
		if err != nil {
			return nil, done, noRun(err)
		}
		done = remove
	}
	if inner != nil && inner.java {
		run["JAVA_TOOL_OPTIONS"] = strings.TrimSpace(os.Getenv("JAVA_TOOL_OPTIONS") + ` "-Djavax.net.ssl.trustStore=` +
			config.TrustStore(run[bundleVariable]) + `" -Djavax.net.ssl.trustStorePassword=changeit`)
	}
	environ := childEnvironment(os.Environ(), run, secretNames(c))
	if user != nil {
		environ = asUser(environ, user)
	}
	command := child.Command{Args: args, Env: environ, Stdin: in, Stdout: out, Stderr: errs, User: user}
	if inner != nil {
		command.Network = &inner.inside
	}
	p, err = child.Start(command)
	if _, ok := errors.AsType[*netns.Error](err); ok {
		err = noRun(err)
	}
	return p, done, err
}

// bundleVariable names the file by which most clients trust the proxy.
const bundleVariable = "SSL_CERT_FILE"

// untrusted says so if the proxy's certificates can't be read here: its folder is another
// user's, or on another machine. The command may have its own way to trust it.
func untrusted(say func(string, ...any), env map[string]string) {
	f, err := os.Open(env[bundleVariable])
	if err != nil {
		say("the proxy's certificates can't be read here (%v): clients won't trust it; let proxy.ca.bundle_out be a file that this user can read", err)
		return
	}
	_ = f.Close()
}

// advising is saying for a run, of which the commands that it names find the ledger and the item.
func (f *runFlags) advising(cmd *cobra.Command) func(string, ...any) {
	say := saying(cmd.ErrOrStderr())
	return func(format string, args ...any) {
		say("%s", onSameLedger(again(cmd), onItem(f.Workflow, f.Item, fmt.Sprintf(format, args...))))
	}
}

// saying writes sentences of ours among the command's output.
func saying(w io.Writer) func(string, ...any) {
	return func(format string, args ...any) {
		fmt.Fprintf(w, "keep-proxy: %s\n", printable(fmt.Sprintf(format, args...)))
	}
}

// relay hands signals to the command while it runs; before and after, they end
// what is waited for.
type relay struct {
	ctx     context.Context
	child   chan syscall.Signal
	cancel  context.CancelFunc
	running atomic.Bool
	raw     chan os.Signal
}

// relayed are the signals by which a session manager or a person ends a program.
var relayed = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

func relaySignals(ctx context.Context) *relay {
	r := &relay{child: make(chan syscall.Signal, 8), raw: make(chan os.Signal, 8)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	for _, s := range relayed {
		// Who starts us with nohup, or in the background of a script, has it ignored, by the
		// command too.
		if !signal.Ignored(s) {
			signal.Notify(r.raw, s)
		}
	}
	go func() {
		for s := range r.raw {
			r.pass(s)
		}
	}()
	return r
}

// outliveReaders keeps a write that nobody reads from ending the program: what is being sent would become unknown.
// Such a write goes, for example, to a tee that Ctrl-C has ended. It still ends the programs that this one starts.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// pass hands one signal on. Signals that the command has not taken yet are enough.
func (r *relay) pass(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok || !r.running.Load() {
		r.cancel()
		return
	}
	select {
	case r.child <- sig:
	default:
	}
}

// toChild starts the command and waits for its end. Signals are the command's from before it is there, as nothing
// else would tell it of them.
func (r *relay) toChild(run func()) {
	r.running.Store(true)
	defer r.running.Store(false)
	run()
}

// close ends the relay.
func (r *relay) close() {
	signal.Stop(r.raw)
	close(r.raw)
	r.cancel()
}
