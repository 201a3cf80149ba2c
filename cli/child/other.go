//go:build !linux

package child

import (
	"errors"
	"syscall"
)

// cgroup is nothing where there are no control groups.
type cgroup struct{}

func newCgroup() *cgroup                        { return nil }
func (*cgroup) attributes(*syscall.SysProcAttr) {}
func (*cgroup) populated() bool                 { return false }
func (*cgroup) kill()                           {}
func (*cgroup) remove()                         {}

// dieWithParent does nothing where the kernel can't tell.
func dieWithParent(*syscall.SysProcAttr) {}

// Confinement says how a stop finds what a command started, and whether all of it.
func Confinement(...string) (how string, whole bool) {
	return "by process group; a descendant that leaves it survives", false
}

// A descendant that left the group can't be found here.
func adopt()                                                   {}
func children() map[int]bool                                   { return nil }
func (*Process) outside() []int                                { return nil }
func killStrays(map[int]bool, func(int, syscall.Signal) error) {}
func reapStrays(map[int]bool)                                  {}

// errNoSwitch: nothing here tells which files another user can read.
var errNoSwitch = errors.New("commands can be run as another user on Linux only")

func (u *User) attributes(*syscall.SysProcAttr) {}
func (u *User) mayHaveTerminal() bool           { return u == nil }

// Switchable says why commands can't be run as another user, nil if they can.
func Switchable() error { return errNoSwitch }

// LookupUser fails, as no command can be run as the user.
func LookupUser(string) (*User, error) { return nil, errNoSwitch }

// CanRead fails: it can't be found out.
func (u *User) CanRead(string) (bool, error) { return false, errNoSwitch }

// CanChange fails: it can't be found out.
func (u *User) CanChange(string) (bool, error) { return false, errNoSwitch }
