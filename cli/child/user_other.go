//go:build !linux

package child

import (
	"errors"
	"syscall"
)

// errNoSwitch: nothing here tells which files another user can read.
var errNoSwitch = errors.New("commands can be run as another user on Linux only")

func (u *User) attributes(*syscall.SysProcAttr) {}

func (u *User) mayHaveTerminal() bool { return u == nil }

// Switchable says why commands can't be run as another user, nil if they can.
func Switchable() error { return errNoSwitch }

// CanRead fails: it can't be found out.
func (u *User) CanRead(string) (bool, error) { return false, errNoSwitch }

// CanChange fails: it can't be found out.
func (u *User) CanChange(string) (bool, error) { return false, errNoSwitch }
