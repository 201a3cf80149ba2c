package child

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the controlling terminal that a command gets; nil for none.
type terminal struct {
	fd  int
	own int // our own process group
}

// controlling returns the terminal that the command shall have: that of its
// standard input, if its output goes there too and we are in the foreground
// ourselves. In a pipeline the terminal belongs to all of it.
func controlling(stdin, stdout *os.File) *terminal {
	if stdin == nil || stdout == nil || !term.IsTerminal(int(stdin.Fd())) || !term.IsTerminal(int(stdout.Fd())) {
		return nil
	}
	t := &terminal{fd: int(stdin.Fd()), own: syscall.Getpgrp()}
	if group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err != nil || group != t.own {
		return nil
	}
	return t
}

// attributes put the command in a group of its own, in the foreground if there
// is a terminal to have.
func (t *terminal) attributes() *syscall.SysProcAttr {
	if t == nil {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: t.fd}
}

// given is called once the command has the terminal. Taking it back from the
// background raises SIGTTOU, which must not stop us; the command was started
// before, since an ignored signal is inherited.
func (t *terminal) given() {
	if t != nil {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// takeBack puts our own group in the foreground.
func (t *terminal) takeBack() {
	if t != nil {
		t.foreground(t.own)
	}
}

func (t *terminal) foreground(group int) {
	// A terminal that has gone has no foreground.
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// suspend stops our own job after the terminal stopped the command, and goes on
// with it. A job that nobody could continue goes on at once.
func (t *terminal) suspend(pid int) {
	if t == nil {
		return
	}
	if !orphaned() {
		continued := make(chan os.Signal, 1)
		signal.Notify(continued, syscall.SIGCONT)
		t.takeBack()
		_ = syscall.Kill(0, syscall.SIGSTOP)
		<-continued
		signal.Stop(continued)
	}
	if group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err == nil && (group == t.own || group == pid) {
		t.foreground(pid)
	}
	_ = syscall.Kill(-pid, syscall.SIGCONT)
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
