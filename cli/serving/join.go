package serving

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// runsFile is the lock that the runs of a data folder share.
const runsFile = "runs.lock"

// lockPoll is how often a lock that another process holds is tried again.
const lockPoll = 50 * time.Millisecond

// Participant is one run's share in a data folder. It ends with Leave, or with the process.
type Participant struct{ file *os.File }

// Join takes a share in a data folder, which must exist. It waits while an
// embedding process is about to stop, until ctx ends.
func Join(ctx context.Context, dir string) (*Participant, error) {
	f, err := os.OpenFile(filepath.Join(dir, runsFile), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // The operator names the data folder.
	if err != nil {
		return nil, fmt.Errorf("join the runs of %s: %w", dir, err)
	}
	p := &Participant{f}
	if err := p.lock(ctx, syscall.LOCK_SH); err != nil {
		return nil, errors.Join(fmt.Errorf("join the runs of %s: %w", dir, err), f.Close())
	}
	return p, nil
}

// Last waits until no other run has a share, and keeps new ones from joining
// until Leave.
func (p *Participant) Last(ctx context.Context) error {
	// flock(2) converts by letting go first: two that both want to be alone must
	// not wait for each other.
	if err := p.lock(ctx, syscall.LOCK_EX); err != nil {
		return fmt.Errorf("wait for the runs that joined: %w", err)
	}
	return nil
}

// Leave gives the share back.
func (p *Participant) Leave() { _ = p.file.Close() }

func (p *Participant) lock(ctx context.Context, how int) error {
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		err := flock(p.file, how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}
