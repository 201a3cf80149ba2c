package program

import (
	"os/exec"
	"sync"
)

// running are the processes that Run has started and not yet waited for.
type running struct {
	mu   sync.Mutex
	pids map[int]bool
}

var own = running{pids: map[int]bool{}}

// start starts a command; ended is called after it was waited for.
func (r *running) start(cmd *exec.Cmd) (ended func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pid := cmd.Process.Pid
	r.pids[pid] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pids, pid)
	}, nil
}

// Apart calls look, which tells Run's processes from others of this process's children.
// Meanwhile none is started and none forgotten.
func Apart(look func(own func(pid int) bool)) {
	own.mu.Lock()
	defer own.mu.Unlock()
	look(func(pid int) bool { return own.pids[pid] })
}
