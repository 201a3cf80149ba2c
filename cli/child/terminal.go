package child

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the controlling terminal, which can be handed to a command; nil for none.
type terminal struct {
	fd  int
	own int // our own process group
	// first says that the command has it from its start.
	first bool
}

// controlling returns the terminal, nil without one. A command has it from its start if it reads and writes it, and
// we are in the foreground. In a pipeline it belongs to all. Any other command gets it when it asks (wanted).
func controlling(c Command) *terminal {
	if !c.User.mayHaveTerminal() {
		return nil
	}
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	t := &terminal{fd: fd, own: syscall.Getpgrp()}
	t.first = t.group() == t.own && isTerminal(c.Stdin) && isTerminal(c.Stdout)
	if c.User != nil && !t.first {
		// It gets a session of its own.
		t.close()
		return nil
	}
	return t
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// close lets the terminal go.
func (t *terminal) close() {
	if t != nil {
		_ = unix.Close(t.fd)
	}
}

// attributes put the command in a group of its own. It is in the foreground if it has the terminal from its start.
func (t *terminal) attributes() *syscall.SysProcAttr {
	if t == nil || !t.first {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: t.fd}
}

// given is called once the command was started, which would inherit an ignored signal. Handing the terminal over from
// the background raises SIGTTOU, which must not stop us.
func (t *terminal) given() {
	if t != nil {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// group is the terminal's foreground group, 0 for none.
func (t *terminal) group() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// takeBack puts our own group in the foreground, if the command has it or left it to nobody.
// A shell that put the job in the background has the terminal itself, and would end without it.
func (t *terminal) takeBack(pid int) {
	if t == nil {
		return
	}
	if group := t.group(); group == pid || errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		t.foreground(t.own)
	}
}

func (t *terminal) foreground(group int) {
	// A terminal that has gone has no foreground.
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// wanted reports whether a command was stopped because it wants the terminal and hasn't got it.
func (t *terminal) wanted(pid int, by syscall.Signal) bool {
	return t != nil && (by == syscall.SIGTTIN || by == syscall.SIGTTOU) && t.group() != pid
}

// lend gives the terminal to a command that was stopped for want of it, and continues it. It does so only while we
// are in the foreground, and reports whether it did.
func (t *terminal) lend(pid int) bool {
	if t.group() != t.own {
		return false
	}
	t.foreground(pid)
	_ = syscall.Kill(-pid, syscall.SIGCONT)
	return true
}

// suspend stops our own job after the terminal stopped the command, and goes on with it. A job that nobody could
// continue goes on at once. A command without the terminal was stopped by somebody who will continue it.
func (t *terminal) suspend(pid int) {
	if t == nil || t.group() != pid {
		return
	}
	if !orphaned() {
		stopped(func() {
			t.takeBack(pid)
			_ = syscall.Kill(0, syscall.SIGSTOP)
		})
	}
	if group := t.group(); group == t.own || group == pid {
		t.foreground(pid)
	}
	_ = syscall.Kill(-pid, syscall.SIGCONT)
}

// stops is told when our own job is stopped without the command, as Ctrl-Z does in a pipeline. It is nil without a
// terminal. Without it the command would go on in a job that the shell calls stopped.
func (t *terminal) stops() chan os.Signal {
	if t == nil {
		return nil
	}
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGTSTP)
	return stops
}

// follow stops the command at each of stops, and continues it when we are continued. It ends with done.
func (t *terminal) follow(pid int, stops chan os.Signal, done <-chan struct{}) {
	defer signal.Stop(stops)
	for {
		select {
		case <-done:
			return
		case <-stops:
		}
		if orphaned() {
			continue
		}
		stopped(func() {
			_ = syscall.Kill(-pid, syscall.SIGTSTP)
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		})
		_ = syscall.Kill(-pid, syscall.SIGCONT)
	}
}

// stopped stops us, and returns once the shell continues us.
func stopped(stop func()) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	stop()
	<-continued
}

// orphaned reports whether our group has no parent in its session that could
// continue it.
func orphaned() bool {
	if syscall.Getpgrp() != os.Getpid() {
		return false
	}
	ours, err := unix.Getsid(0)
	if err != nil {
		return true
	}
	parents, err := unix.Getsid(os.Getppid())
	return err != nil || ours != parents
}
