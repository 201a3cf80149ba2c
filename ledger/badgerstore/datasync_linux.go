package badgerstore

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync syncs the content of f; its size never changes.
func fdatasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// allocate reserves size bytes for f.
func allocate(f *os.File, size int64) error { return unix.Fallocate(int(f.Fd()), 0, 0, size) }
