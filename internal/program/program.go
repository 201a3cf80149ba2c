package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	// ErrTimeout is a program that did not end in its time, or whose caller gave up.
	ErrTimeout = errors.New("it did not end in its time and was killed")
	// ErrOutput is a program that wrote more than it may.
	ErrOutput = errors.New("it wrote more than it may and was killed")
)

// drain is how long output is waited for after the group was killed. A descendant that left the group may hold the
// pipe.
const drain = time.Second

// Spec is what to run. Args and Timeout are required, and MaxOutput unless it is Unheard.
type Spec struct {
	// Args are the program, as exec.LookPath finds it, and its arguments.
	Args []string
	// Env is the whole environment, each NAME=value; nil for none.
	Env []string
	// Stdin is given on standard input.
	Stdin   []byte
	Timeout time.Duration
	// MaxOutput bounds standard output, in bytes.
	MaxOutput int64
	// Unheard is for a program of which the exit code alone counts; its output is dropped. What it leaves running when
	// it ends well isn't waited for, and continues.
	Unheard bool
	// MaxMemory bounds the data of each process, in bytes; 0 for no limit.
	MaxMemory int64
}

// Run runs the program and returns what it wrote to standard output, once it ended
// with exit code 0.
func Run(ctx context.Context, s Spec) ([]byte, error) {
	if len(s.Args) == 0 || s.Timeout <= 0 || s.MaxOutput <= 0 && !s.Unheard {
		return nil, errors.New("program: an incomplete specification")
	}
	name := filepath.Base(s.Args[0])
	out, err := run(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	return out, nil
}

func run(ctx context.Context, s Spec) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	out := &bounded{left: s.MaxOutput, over: cancel}
	cmd := exec.CommandContext(ctx, s.Args[0], s.Args[1:]...) //nolint:gosec // It is the operator's program.
	cmd.Env = append([]string{}, s.Env...)
	cmd.Stdin = bytes.NewReader(s.Stdin)
	if !s.Unheard { // Else it is the null device, by which nobody is kept waiting.
		cmd.Stdout, cmd.Stderr = out, io.Discard
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = drain
	ended, err := own.start(cmd)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ErrTimeout
		}
		return nil, plain(err)
	}
	defer ended()
	if err := limitMemory(cmd.Process.Pid, s.MaxMemory); err != nil {
		_ = killGroup(cmd.Process)
		_ = cmd.Wait()
		return nil, fmt.Errorf("its memory can't be limited: %w", err)
	}
	err = cmd.Wait()
	if !s.Unheard || err != nil {
		// What the program left running is of no use to anyone.
		_ = killGroup(cmd.Process)
	}
	switch {
	case out.exceeded:
		return nil, ErrOutput
	case ctx.Err() != nil:
		return nil, ErrTimeout
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("a process that it left behind holds its output")
	case err != nil && !errors.Is(err, syscall.EPIPE):
		return nil, plain(err)
	case !cmd.ProcessState.Success():
		return nil, errors.New(cmd.ProcessState.String())
	}
	return out.content.Bytes(), nil
}

// plain leaves out the path that errors of os/exec repeat.
func plain(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// killGroup kills a program with everything that stayed in its process group.
func killGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// bounded keeps what is written up to a bound, and calls over beyond it.
type bounded struct {
	content  bytes.Buffer
	left     int64
	exceeded bool
	over     func()
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		b.exceeded = true
		b.over()
		return 0, ErrOutput
	}
	return b.content.Write(p)
}

// plainNames are the variables that tell a program where it is, and no secret.
var plainNames = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// PlainEnvironment is what a program may know of an environment that holds secrets.
func PlainEnvironment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(plainNames, name)
	})
}
