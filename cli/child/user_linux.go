package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// LookupUser finds a user by name or number. It takes the numbers UID:GID too, without a name, a home and further
// groups. Our own user and root are refused: they can read whatever we can.
func LookupUser(name string) (*User, error) {
	u, err := lookupUser(name)
	if err != nil {
		return nil, err
	}
	if uid := uint32(os.Getuid()); u.UID == uid || u.UID == 0 {
		return nil, fmt.Errorf("user %s can read whatever keep-proxy can; name one that can't", name)
	}
	return u, nil
}

func lookupUser(name string) (*User, error) {
	if uid, gid, ok := strings.Cut(name, ":"); ok {
		ids, err := numbers(uid, gid)
		if err != nil {
			return nil, fmt.Errorf("user %q: %w; give a name, a number, or UID:GID", name, err)
		}
		return &User{UID: ids[0], GID: ids[1], Groups: ids[1:]}, nil
	}
	found, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		found, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("user %q is not known here: %w; give a name, a number, or UID:GID", name, err)
	}
	groups, err := found.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of user %s: %w", name, err)
	}
	ids, err := numbers(slices.Concat([]string{found.Uid, found.Gid}, groups)...)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	return &User{Name: found.Username, Home: found.HomeDir, UID: ids[0], GID: ids[1], Groups: ids[2:]}, nil
}

func numbers(words ...string) ([]uint32, error) {
	out := make([]uint32, len(words))
	for i, word := range words {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil || n == 1<<32-1 {
			return nil, fmt.Errorf("%q is no user's or group's number", word)
		}
		out[i] = uint32(n)
	}
	return out, nil
}

// attributes makes a command start as the user; nil is our own. Without our terminal it gets a session of its own.
// Whoever is in ours can type commands into our terminal (TIOCSTI).
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
func (u *User) CanRead(path string) (bool, error) {
	return u.can("read", path, func() error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	})
}

// CanChange reports whether the user can put files into a folder, and take some out. Kernels
// before 5.8 can't tell.
func (u *User) CanChange(dir string) (bool, error) {
	return u.can("change", dir, func() error {
		name, err := unix.BytePtrFromString(dir)
		if err != nil {
			return err
		}
		folder := unix.AT_FDCWD
		// The package's own call would look at the user of the whole program where the kernel can't.
		_, _, e := unix.RawSyscall6(unix.SYS_FACCESSAT2, uintptr(folder), uintptr(unsafe.Pointer(name)), //nolint:gosec // read during the call
			unix.W_OK|unix.X_OK, unix.AT_EACCESS, 0, 0)
		if e == 0 {
			return nil
		}
		if e == unix.ENOSYS {
			return unix.EACCES
		}
		return e
	})
}

// can tries something with the user's rights to files.
func (u *User) can(what, path string, try func() error) (can bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread isn't unlocked: it ends with the goroutine, as it is the user's then.
		runtime.LockOSThread()
		if err = u.become(); err != nil {
			return
		}
		switch tried := try(); {
		case tried == nil:
			can = true
		case errors.Is(tried, unix.EACCES), errors.Is(tried, unix.EPERM), errors.Is(tried, unix.ENOENT), errors.Is(tried, unix.EROFS):
		default:
			err = tried
		}
	}()
	<-done
	if err != nil {
		return false, fmt.Errorf("see whether user %d can %s %s: %w", u.UID, what, path, err)
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
