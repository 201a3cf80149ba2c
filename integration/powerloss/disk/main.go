// Command disk is a file system that knows what is durable. It shows a folder. Beside it, it keeps
// each file's content and each folder's names as of their last sync. It also sees writes through a
// memory map, and the syncs that a library makes. It is a process of its own: a program that maps
// files of its own file system can block itself.
//
// What can't be followed ends it: the program above then sees an error for whatever it does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"keep-proxy/integration/powerloss"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "disk:", err)
		os.Exit(1)
	}
}

func run() error {
	d := &disk{}
	if len(os.Args) != 2 {
		return errors.New("wants its settings as its only argument")
	}
	if err := json.Unmarshal([]byte(os.Args[1]), &d.Disk); err != nil {
		return err
	}
	d.shadow = powerloss.Shadow{Dir: d.Shadow}
	root := &fs.LoopbackRoot{Path: d.Backing}
	root.NewNode = func(r *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &node{fs.LoopbackNode{RootData: r}, d}
	}
	top := &node{fs.LoopbackNode{RootData: root}, d}
	root.RootNode = top
	server, err := fs.Mount(d.Mount, top, &fs.Options{MountOptions: fuse.MountOptions{DirectMount: true, FsName: "keep-disk"}})
	if err != nil {
		return fmt.Errorf("mount %s: %w", d.Mount, err)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := server.Unmount(); err != nil {
		return errors.Join(fmt.Errorf("unmount: %w", err), syscall.Unmount(d.Mount, syscall.MNT_DETACH))
	}
	return nil
}

// disk keeps what is durable. One step is taken at a time.
type disk struct {
	powerloss.Disk
	shadow powerloss.Shadow
	mu     sync.Mutex
}

// node is a file or folder.
type node struct {
	fs.LoopbackNode
	disk *disk
}

// file is one that is open. Its content passes through here, also where the kernel could
// go by us.
type file struct{ *fs.LoopbackFile }

func (*file) PassthroughFd() (int, bool) { return -1, false }

func through(h fs.FileHandle) fs.FileHandle {
	if f, ok := h.(*fs.LoopbackFile); ok {
		return &file{f}
	}
	return h
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, f, errno := n.LoopbackNode.Open(ctx, flags)
	return through(h), f, errno
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	i, h, f, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return i, through(h), f, errno
}

// folder is one that is open, by which it is synced.
type folder struct {
	reading
	node *node
}

// reading is what else an open folder is asked for.
type reading interface {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
}

func (f *folder) Fsyncdir(ctx context.Context, _ uint32) syscall.Errno {
	return f.node.Fsync(ctx, f, 0)
}

func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, f, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	r, ok := h.(reading)
	if !ok {
		n.disk.end(errors.New("a folder can't be followed"))
	}
	return &folder{r, n}, f, 0
}

// path is where the node lies, from the root.
func (n *node) path() string { return n.Path(n.Root()) }

// Fsync is asked for files and folders. Nothing is synced below: no power is really lost.
func (n *node) Fsync(ctx context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	path := n.path()
	if n.IsDir() {
		return n.disk.step(ctx, "disk: sync of the folder", path, func(at string) error { return n.disk.shadow.SyncDir(at) })
	}
	return n.disk.step(ctx, "disk: sync of", path, func(at string) error {
		return errors.Join(n.disk.shadow.Sync(at), n.disk.shadow.Name(at))
	})
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.disk.step(ctx, "disk: removal of", filepath.Join(n.path(), name), func(string) error {
		return result(n.LoopbackNode.Unlink(ctx, name))
	})
}

func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to := filepath.Join(parent.EmbeddedInode().Path(n.Root()), newName)
	return n.disk.step(ctx, "disk: rename to", to, func(string) error {
		return result(n.LoopbackNode.Rename(ctx, name, parent, newName, flags))
	})
}

// result is the errno as an error, nil for none.
func result(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// step takes a step. The program is ended before or after it, as it is told.
func (d *disk) step(ctx context.Context, what, path string, do func(at string) error) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pass(ctx, "before "+what, path) {
		return syscall.EIO
	}
	if err := do(filepath.Join(d.Backing, path)); err != nil {
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			return errno
		}
		d.end(err)
	}
	d.pass(ctx, "after "+what, path)
	return 0
}

// pass counts a passing of the step and reports whether the program was ended at it.
func (d *disk) pass(ctx context.Context, what, path string) bool {
	if told(what, path) {
		return false
	}
	kill, err := d.Pass(what + " " + class(path))
	if err != nil {
		d.end(err)
	}
	if !kill {
		return false
	}
	caller, ok := fuse.FromContext(ctx)
	if !ok {
		d.end(errors.New("nobody asked"))
	}
	if err := syscall.Kill(int(caller.Pid), syscall.SIGKILL); err != nil {
		d.end(fmt.Errorf("kill %d: %w", caller.Pid, err))
	}
	return true
}

// end ends the file system.
func (d *disk) end(err error) {
	fmt.Fprintln(os.Stderr, "disk:", err)
	_ = syscall.Unmount(d.Mount, syscall.MNT_DETACH)
	os.Exit(1)
}

// told reports whether the program itself tells of this step. It tells of the ledger's own files,
// but not of its engine's.
func told(what, path string) bool {
	rest, ledger := strings.CutPrefix(path, "ledger/")
	if !ledger {
		return path == "ledger"
	}
	if name, engine := strings.CutPrefix(rest, "data/"); engine {
		return filepath.Ext(name) == ".mem" && strings.Contains(what, "sync")
	}
	return rest != "data"
}

// class is a path without what differs from file to file.
func class(path string) string {
	dir, base := filepath.Split(path)
	switch ext := filepath.Ext(base); {
	case ext == ".mem" || ext == ".sst" || ext == ".vlog":
		base = "*" + ext
	case strings.HasPrefix(base, "."):
		base = ".*"
	}
	if dir == "" && base == "" {
		return "."
	}
	return dir + base
}
