package badgerstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"keep-proxy/internal/fault"
)

// Every sync and rename of this package is here, as a step that a test can watch and crash at.

// datasync makes the content of f durable.
func datasync(f *os.File) error {
	return fault.Begin(fault.OpSync, f.Name()).End(fdatasync(f))
}

// rename gives a file another name. The name is durable once its folder is synced.
func rename(from, to string) error {
	return fault.Begin(fault.OpRename, to).End(os.Rename(from, to))
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	s := fault.Begin(fault.OpSyncDir, dir)
	return s.End(errors.Join(d.Sync(), d.Close()))
}

// syncAbove makes durable the name of a folder, and those of all folders above it on this file system. They may
// have been made for it. One that can't be read was made by somebody else.
func syncAbove(dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	for err == nil {
		above := filepath.Dir(dir)
		var here, there unix.Stat_t
		if err = errors.Join(unix.Stat(dir, &here), unix.Stat(above, &there)); err != nil || above == dir || here.Dev != there.Dev {
			break
		}
		if err = syncDir(above); errors.Is(err, fs.ErrPermission) {
			return nil
		}
		dir = above
	}
	return err
}

// writeSynced puts content at path by way of a synced temporary file.
func writeSynced(path string, content []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already if all went well
	_, err = f.Write(content)
	if err == nil {
		err = fault.Begin(fault.OpSync, f.Name()).End(f.Sync())
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}
