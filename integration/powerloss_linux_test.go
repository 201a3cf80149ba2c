package integration

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"keep-proxy/integration/powerloss"
)

// diskVar names the program of integration/powerloss/disk: a loss of power is then made
// below the file system, of all that the program keeps. Without it, it is made of copies
// that the program takes of the ledger at each of its own syncs.
const diskVar = "KEEP_TEST_DISK"

// disk is a file system that knows what is durable, below a program's state.
type disk struct {
	cmd   *exec.Cmd
	stdin io.Closer
	told  powerloss.Disk
}

// state is the folder with all that the program keeps.
func (x *crash) state() string { return filepath.Join(x.settings.Dir, "state") }

// mount puts the program's state on a disk, if there is one.
func (x *crash) mount() error {
	program := os.Getenv(diskVar)
	if program == "" {
		return nil
	}
	d := &disk{told: powerloss.Disk{Mount: x.state(), Backing: x.backing(), Shadow: x.watching.Shadow}}
	s := &x.watching.Steps
	d.told.Trace, d.told.Begun, d.told.Kill = s.Trace, s.Begun, s.Kill
	settings, err := json.Marshal(&d.told)
	if err = errors.Join(err, os.Mkdir(d.told.Mount, 0o700), os.MkdirAll(d.told.Backing, 0o700)); err != nil {
		return err
	}
	d.cmd = exec.Command(program, string(settings))
	d.cmd.Stderr = x.output
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		return err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return errors.Join(fmt.Errorf("the disk said %q: %w", line, err), d.cmd.Wait())
	}
	x.disk = d
	x.t.Cleanup(func() { _ = x.unmount() }) // Done already if all went well.
	// The file system sees each sync itself.
	x.watching.Shadow = ""
	return nil
}

// losePowerAndGoOn loses the power beneath a program that was killed. What is left is durable.
func (x *crash) losePowerAndGoOn() {
	x.t.Helper()
	ending := x.ending
	x.ending = powerless
	onDisk := x.disk != nil
	err := x.lose()
	if x.ending = ending; err == nil && onDisk {
		// Below the file system that comes now lies what this one has left.
		x.remounted++
		if err = os.Rename(x.state(), x.backing()); err == nil {
			x.watching.Shadow = filepath.Join(x.settings.Dir, "shadow")
			err = powerloss.Shadow{Dir: x.watching.Shadow}.Keep(x.backing())
		}
		err = errors.Join(err, x.mount())
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.keep()
}

// backing is the folder that a file system below the program shows.
func (x *crash) backing() string {
	return filepath.Join(x.settings.Dir, "disk"+strconv.Itoa(x.remounted))
}

// keep takes the ledger as it is for durable, where a loss of power is made of copies.
func (x *crash) keep() {
	x.t.Helper()
	if x.watching.Shadow == "" {
		return
	}
	if err := (powerloss.Shadow{Dir: x.watching.Shadow}).Keep(x.watching.Ledger); err != nil {
		x.t.Fatal(err)
	}
}

// explain has a program that hangs say where, and then the disk below it.
func (x *crash) explain() {
	if !x.t.Failed() || x.child == nil || x.disk == nil {
		return
	}
	_ = x.child.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-x.child.gone:
	case <-time.After(10 * time.Second): // Not while it waits for the disk.
	}
	_ = x.disk.cmd.Process.Signal(syscall.SIGQUIT)
	<-x.child.gone
}

// unmount takes the disk away; nobody has a file open on it any more.
func (x *crash) unmount() error {
	d := x.disk
	if x.disk = nil; d == nil {
		return nil
	}
	return errors.Join(d.stdin.Close(), d.cmd.Wait())
}

// lose makes of the program's files what the ending leaves of them.
func (x *crash) lose() error {
	loss := &powerloss.Loss{Shadow: powerloss.Shadow{Dir: x.watching.Shadow}}
	if x.ending == torn {
		loss.Random = rand.New(rand.NewPCG(x.seed, 1))
	}
	lossy := x.ending == torn || x.ending == powerless
	if d := x.disk; d != nil {
		if err := x.unmount(); err != nil {
			return err
		}
		if !lossy {
			return errors.Join(os.Remove(d.told.Mount), os.Rename(d.told.Backing, d.told.Mount))
		}
		loss.Dir = d.told.Shadow
		return errors.Join(loss.Leave(d.told.Backing, d.told.Mount), os.RemoveAll(d.told.Backing))
	}
	if !lossy {
		return nil
	}
	loss.Durable = byItself
	old := x.watching.Ledger + ".before"
	return errors.Join(os.Rename(x.watching.Ledger, old), loss.Leave(old, x.watching.Ledger), os.RemoveAll(old))
}

// byItself says that a file of the ledger isn't one that the ledger syncs: those of its
// engine, which syncs them where nobody in the process can watch it, and what lies in the
// folder besides. They count as durable as they are, and so do folders.
func byItself(path string, folder bool) bool {
	dir, name := filepath.Split(path)
	switch {
	case folder:
		return true
	case dir == "data/":
		return true
	case dir != "":
		return false
	}
	return !strings.HasPrefix(name, "ledger.") && !strings.HasPrefix(name, ".new-") && name != "log"
}
