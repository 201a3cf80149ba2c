//go:build unix && !linux

package child

import "syscall"

// adopt does nothing where orphans can't be adopted.
func adopt() {}

// children isn't needed where strays can't be found.
func children() map[int]bool { return nil }

// outside can't be found.
func (*Process) outside() []int { return nil }

// killStrays does nothing: what left the group can't be found.
func killStrays(map[int]bool, func(int, syscall.Signal) error) {}

// reapStrays does nothing: there are none.
func reapStrays(map[int]bool) {}
