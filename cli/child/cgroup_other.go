//go:build unix && !linux

package child

import "syscall"

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
