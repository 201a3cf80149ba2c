package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributes makes a command start as the user; nil is our own. Without a terminal of its
// own it gets a session of its own: whoever is in ours can open our terminal and type into
// it (TIOCSTI), and what is typed there is a command of ours.
func (u *User) attributes(a *syscall.SysProcAttr) {
	if u == nil {
		return
	}
	a.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	if !a.Foreground {
		a.Setpgid, a.Setsid = false, true
	}
}

// tiocsti says whether processes may type into their terminal. Kernels before 6.2 don't
// have it, and let everybody.
const tiocsti = "/proc/sys/dev/tty/legacy_tiocsti"

// mayHaveTerminal reports whether a command of the user's can be given ours; nil is our own.
func (u *User) mayHaveTerminal() bool {
	if u == nil {
		return true
	}
	word, err := os.ReadFile(tiocsti)
	return err == nil && string(bytes.TrimSpace(word)) == "0"
}

// Switchable says why commands can't be run as another user, nil if they can. It takes
// root: with less the command could not be ended.
func Switchable() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can run commands as another user")
	}
	return nil
}

// CanRead reports whether the user can open a file for reading. The kernel decides, lists
// of access rights included.
func (u *User) CanRead(path string) (can bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread isn't unlocked: it ends with the goroutine, as it is the user's then.
		runtime.LockOSThread()
		if err = u.become(); err != nil {
			return
		}
		fd, openErr := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		switch {
		case openErr == nil:
			can = true
			_ = unix.Close(fd)
		case errors.Is(openErr, unix.EACCES), errors.Is(openErr, unix.EPERM), errors.Is(openErr, unix.ENOENT):
		default:
			err = openErr
		}
	}()
	<-done
	if err != nil {
		return false, fmt.Errorf("see whether user %d can read %s: %w", u.UID, path, err)
	}
	return can, nil
}

// become gives this thread alone the user's rights to files. Go's own calls change every
// thread.
func (u *User) become() error {
	var first unsafe.Pointer
	if len(u.Groups) > 0 {
		first = unsafe.Pointer(&u.Groups[0]) //nolint:gosec // the kernel reads the list during the call
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(u.Groups)), uintptr(first), 0); e != 0 {
		return e
	}
	for _, c := range []struct {
		call uintptr
		id   uint32
	}{{unix.SYS_SETFSGID, u.GID}, {unix.SYS_SETFSUID, u.UID}} {
		// Neither says whether it worked; asked for an impossible id, it says which there is.
		_, _, _ = unix.RawSyscall(c.call, uintptr(c.id), 0, 0)
		if now, _, _ := unix.RawSyscall(c.call, ^uintptr(0), 0, 0); uint32(now) != c.id {
			return unix.EPERM
		}
	}
	return nil
}
