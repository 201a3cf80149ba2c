package doctor

import (
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of file systems by the magic numbers of statfs(2). Those over a network have
// locks and syncs of their own mind; those in memory keep nothing.
var (
	localKinds = map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.F2FS_SUPER_MAGIC: "f2fs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlayfs (a container's own layer: kept only as long as the container)", 0x2fc12fc1: "zfs",
	}
	otherKinds = map[int64]string{
		unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", unix.SMB2_SUPER_MAGIC: "smb2", unix.CIFS_SUPER_MAGIC: "cifs",
		unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "ceph", unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.AFS_SUPER_MAGIC: "afs",
	}
)

// fileSystem names the kind that a folder is on; empty if it isn't known. Those that can't keep the ledger are bad.
func fileSystem(dir string) (kind string, bad bool, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", false, err
	}
	magic := int64(s.Type) //nolint:unconvert,nolintlint // Its type differs between architectures.
	if kind, ok := otherKinds[magic]; ok {
		return kind, true, nil
	}
	return localKinds[magic], false, nil
}

// clockSynchronised asks the kernel whether something keeps its clock.
func clockSynchronised() Finding {
	const name = "wall clock"
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	switch {
	case err != nil:
		return unknown(name, err.Error(), "keep it synchronised: vendors' windows and creation times are compared with it")
	case state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0:
		return advice(name, "the kernel's clock isn't synchronised", "run an NTP client: vendors' windows and creation times are compared with it")
	}
	return sound(name, "synchronised, at most "+(time.Duration(t.Maxerror)*time.Microsecond).String()+" off")
}
