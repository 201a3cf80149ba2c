// Package child runs one command as a process group of its own, so that all of it can be ended.
//
// On a terminal the group is put in the foreground, as a shell does with a job: Ctrl-C goes to the command alone.
// Ctrl-Z stops the command and then this process, until the shell continues both. A command whose output goes
// elsewhere waits for the terminal until we are in the foreground. So does one that was started in the background.
// Without a terminal signals reach it by Signal only.
//
// Stop sends SIGTERM to the group, and SIGKILL after a grace. On Linux it also ends processes that left the group.
// The command starts in a control group (cgroup v2) where one can be made. This process adopts the orphans of its
// children (prctl PR_SET_CHILD_SUBREAPER). On other systems those that left survive, and the proxy refuses their dead
// token. Confinement says which holds here.
//
// On Linux the command, not what it started, is killed when this process ends (prctl PR_SET_PDEATHSIG).
//
// # Failure
//
// A command that can't be started is a [*StartError] with a shell's code, and nothing of it is left. One whose end
// can't be learned counts as killed, never as a success. A process that can't be signalled, such as another user's,
// isn't waited for.
//
// # Caveats
//
// A process may run one command at a time, and start no others meanwhile. Stop takes every new child for the
// command's.
package child

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"keep-proxy/cli/netns"
)

// Exit codes of a command that could not be started, as shells give them.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// signalBase is added to the number of the signal that ended a command.
const signalBase = 128

// defaultGrace is Command's.
const defaultGrace = 5 * time.Second

// Command is what to run. Args is required.
type Command struct {
	Args []string
	// Env is the whole environment, each NAME=value.
	Env []string
	// Stdin, Stdout and Stderr are handed to the command as they are.
	Stdin, Stdout, Stderr *os.File
	// User is as whom it runs, nil for our own. Another one gets our terminal as its own only
	// where nobody can type into it for somebody else.
	User *User
	// Network is the network of its own that the command gets; nil for ours. A *StartError wraps a *netns.Error if it can't
	// be had.
	Network *netns.Spec
	// Grace is the time between SIGTERM and SIGKILL (default 5 s).
	Grace time.Duration
}

// User is another user as whom a command can be run.
type User struct {
	Name, Home string
	UID, GID   uint32
	// Groups are the user's groups; the command is in no other.
	Groups []uint32
}

// Process is a started command.
type Process struct {
	pid      int
	grace    time.Duration
	terminal *terminal
	before   map[int]bool
	cgroup   *cgroup
	network  *netns.Network

	done   chan struct{}
	status syscall.WaitStatus
	stop   sync.Once
	// stopped says that something stopped the command, and nothing continued it yet.
	stopped atomic.Bool
}

// StartError says why a command could not be started, and with which code a shell
// would end.
type StartError struct {
	Code int
	Err  error
}

// Error names the cause.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Start starts a command. The error is a *StartError.
func Start(c Command) (*Process, error) {
	if len(c.Args) == 0 {
		return nil, &StartError{CodeNotFound, errors.New("no command was given")}
	}
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return nil, startError(c.Args[0], err)
	}
	p := &Process{grace: cmp.Or(c.Grace, defaultGrace), done: make(chan struct{}), terminal: controlling(c)}
	adopt()
	p.before = children()
	started := make(chan error)
	go func() {
		// The command is killed when the thread that started it ends (see dieWithParent).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer p.terminal.close()
		stops := p.terminal.stops()
		if err := p.start(path, c); err != nil {
			signal.Stop(stops)
			// What was tried may have had the terminal.
			p.terminal.given()
			p.terminal.takeBack(0)
			started <- err
			return
		}
		// Before it is looked whether the command has stopped: it may have at once.
		p.terminal.given()
		if p.terminal != nil {
			go p.terminal.follow(p.pid, stops, p.done)
		}
		started <- nil
		p.reap()
	}()
	if err := <-started; err != nil {
		return nil, startError(c.Args[0], err)
	}
	return p, nil
}

// start starts the command, in a control group where one can be had. Some sandboxes let one be made, and no process
// start in it.
func (p *Process) start(path string, c Command) error {
	p.cgroup = newCgroup()
	err := p.execute(path, c)
	if err != nil && p.cgroup != nil {
		p.cgroup.remove()
		p.cgroup = nil
		err = p.execute(path, c)
	}
	return err
}

func (p *Process) execute(path string, c Command) (err error) {
	a := p.attributes(c)
	if c.Network != nil {
		p.pid, p.network, err = netns.Start(*c.Network, path, c.Args, a)
		return err
	}
	started, err := os.StartProcess(path, c.Args, a)
	if err != nil {
		return err
	}
	p.pid = started.Pid
	// We reap it ourselves: os.Process can't tell of a stopped one.
	_ = started.Release()
	return nil
}

func (p *Process) attributes(c Command) *os.ProcAttr {
	a := p.terminal.attributes()
	p.cgroup.attributes(a)
	c.User.attributes(a)
	dieWithParent(a)
	return &os.ProcAttr{Env: c.Env, Files: []*os.File{c.Stdin, c.Stdout, c.Stderr}, Sys: a}
}

// startError gives a cause the code that shells give it.
func startError(name string, err error) *StartError {
	code := CodeNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = CodeNotFound
	}
	// These would name it again.
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return &StartError{code, fmt.Errorf("%s: %w", name, err)}
}

// terminalPoll is how often it is looked whether a terminal that a command waits for is ours.
const terminalPoll = 100 * time.Millisecond

// reap waits for the command, and stops with it when the terminal stops it.
func (p *Process) reap() {
	defer close(p.done)
	defer p.cgroup.remove()
	poll := time.NewTicker(terminalPoll)
	defer poll.Stop()
	for options := syscall.WUNTRACED | syscall.WCONTINUED; ; {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(p.pid, &status, options, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			// It can't be: only this goroutine reaps it. Its end isn't known then, so
			// that it must not pass for a success.
			p.status = syscall.WaitStatus(syscall.SIGKILL)
			return
		case got == 0:
			// It waits for the terminal, as a job in the background does for its shell's fg.
			if <-poll.C; p.terminal.lend(p.pid) {
				options &^= syscall.WNOHANG
			}
		case status.Stopped():
			p.stopped.Store(true)
			if p.terminal.wanted(p.pid, status.StopSignal()) {
				options |= syscall.WNOHANG
				continue
			}
			p.terminal.suspend(p.pid)
		case status.Continued():
			p.stopped.Store(false)
			options &^= syscall.WNOHANG
		default:
			p.status = status
			p.terminal.takeBack(p.pid)
			return
		}
	}
}

// Done is closed when the command has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Code waits for the command and returns its exit code, or 128 plus the signal that ended it.
func (p *Process) Code() int {
	<-p.done
	if p.status.Signaled() {
		return signalBase + int(p.status.Signal())
	}
	return p.status.ExitStatus()
}

// Network is the command's own network, nil without one. Close it after the command's end.
func (p *Process) Network() *netns.Network { return p.network }

// PID is the command's process id, and that of its group.
func (p *Process) PID() int { return p.pid }

// Signal sends a signal that ends programs to the command's group. It does nothing once the
// command has ended.
func (p *Process) Signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.pid, sig)
		if p.stopped.Load() { // It would not see the signal.
			_ = syscall.Kill(-p.pid, syscall.SIGCONT)
		}
	}
}

// Stop ends the command and everything that it started: SIGTERM, after the grace
// SIGKILL. It returns when they are gone, and may be called more than once.
func (p *Process) Stop() {
	p.stop.Do(func() {
		// Each is asked once: some programs hurry on a second signal.
		for _, pid := range append(p.outside(), -p.pid) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			// A stopped process would not see the signal.
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		grace := time.NewTimer(p.grace)
		defer grace.Stop()
		select {
		case <-p.done:
			p.awaitGroup(grace.C)
		case <-grace.C:
		}
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		p.cgroup.kill()
		<-p.done
		killStrays(p.before, syscall.Kill)
		p.cgroup.remove()
	})
	<-p.done
}

// groupPoll is how often a group whose leader has ended is looked at.
const groupPoll = 20 * time.Millisecond

// awaitGroup lets the rest of what the command started have the rest of the grace.
func (p *Process) awaitGroup(grace <-chan time.Time) {
	within(grace, groupPoll, func() bool {
		if syscall.Kill(-p.pid, 0) != nil && !p.cgroup.populated() && len(p.outside()) == 0 {
			return true
		}
		reapStrays(p.before)
		return false
	})
}

// within asks every so often whether something is done, until it is or time is over. It reports whether it is.
func within(over <-chan time.Time, every time.Duration, done func() bool) bool {
	poll := time.NewTicker(every)
	defer poll.Stop()
	for !done() {
		select {
		case <-over:
			return false
		case <-poll.C:
		}
	}
	return true
}
