package isolate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// maxTargets bounds how many targets are told apart. A command may try every port there is. All beyond are otherTargets.
const (
	maxTargets   = 1000
	otherTargets = "other targets"
)

// maxQueued is more packets than the queue holds. Whatever the command left running may fill it again and again.
const maxQueued = 1 << 14

// Refusal says how often a target was refused.
type Refusal struct {
	// Network is "tcp" or "udp".
	Network string
	// Target is host:port, or otherTargets.
	Target string
	Count  int
}

// Refusals counts what a command's network refused.
type Refusals struct {
	mu     sync.Mutex
	counts map[Refusal]int // The keys have no Count.
}

// NewRefusals counts nothing yet.
func NewRefusals() *Refusals { return &Refusals{counts: map[Refusal]int{}} }

// Note counts one refusal, by whoever refused.
func (r *Refusals) Note(network, target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what := Refusal{Network: network, Target: target}
	if r.counts[what] == 0 && len(r.counts) >= maxTargets {
		what.Target = otherTargets
	}
	r.counts[what]++
}

// List is what was refused so far, the most frequent first.
func (r *Refusals) List() (list []Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, n := range r.counts {
		list = append(list, Refusal{what.Network, what.Target, n})
	}
	slices.SortFunc(list, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Network, b.Network), cmp.Compare(a.Target, b.Target))
	})
	return list
}

// Watch counts what it reads from Network.Packets, until ctx ends, and what is queued by then. called says what a target is
// called.
func (r *Refusals) Watch(ctx context.Context, packets *os.File, called func(netip.AddrPort) string) error {
	defer context.AfterFunc(ctx, func() { _ = packets.SetReadDeadline(time.Unix(1, 0)) })()
	packet := make([]byte, packetBytes)
	take := func(n int) {
		if network, target := refused(packet[:max(0, n)]); network != "" {
			r.Note(network, called(target))
		}
	}
	var n int
	var err error
	for ; err == nil; take(n) {
		n, err = packets.Read(packet)
	}
	raw, failed := packets.SyscallConn()
	if !errors.Is(err, os.ErrDeadlineExceeded) || failed != nil {
		return fmt.Errorf("watch for what is refused: %w", errors.Join(err, failed))
	}
	return raw.Control(func(fd uintptr) {
		err = nil
		for left := maxQueued; err == nil && left > 0; left-- {
			n, err = syscall.Read(int(fd), packet)
			take(n)
		}
	})
}
