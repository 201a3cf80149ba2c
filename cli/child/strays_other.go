//go:build unix && !linux

package child

// adopt does nothing where orphans can't be adopted.
func adopt() {}

// children isn't needed where strays can't be found.
func children() map[int]bool { return nil }

// killStrays does nothing: what left the group can't be found.
func killStrays(map[int]bool) {}

// reapStrays does nothing: there are none.
func reapStrays(map[int]bool) {}
