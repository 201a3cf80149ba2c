package fakes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// Child is a fake in a process of its own.
type Child struct {
	Announcement
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when the child is gone; err is set then
	err   error
}

// Spawn starts cmd, a program that calls Main with -until-eof among its arguments, and waits for its announcement. The
// child's standard input is a pipe that we hold. So the child ends when this process does, however that happens. A
// child that ends before it announces is an error that says how. One that does neither is waited for, so make cmd with
// a context.
func Spawn(cmd *exec.Cmd) (*Child, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("fakes: spawn: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("fakes: spawn: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("fakes: spawn: %w", err)
	}
	c := &Child{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.Announcement)
	}
	if err != nil {
		_ = stdin.Close()
		return nil, fmt.Errorf("fakes: spawn: no announcement (%w); the child ended: %w", err, ended(cmd.Wait()))
	}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// errEndedQuietly stands for an exit code of 0 where none was expected.
var errEndedQuietly = errors.New("with exit code 0")

func ended(err error) error {
	if err == nil {
		return errEndedQuietly
	}
	return err
}

// Stop lets the child end by itself and returns how it did. It may be called
// again, and after Kill.
func (c *Child) Stop() error {
	_ = c.stdin.Close() // closed already, if the child has ended
	<-c.done
	return c.err
}

// Kill ends the child with SIGKILL and returns when it is gone.
func (c *Child) Kill() error {
	err := c.cmd.Process.Kill()
	<-c.done
	return err
}
