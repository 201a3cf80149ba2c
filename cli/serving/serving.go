// Package serving tells commands of one data folder about the proxy that serves it.
//
// A serving process announces itself in the file serving.json, and holds a lock on that file while it lives. A file
// whose lock is free was left by a process that was killed, and counts as none. Its process id and its port may be
// another program's by now, which must not be sent the operator's token.
//
// A proxy that a run embeds must stay until the last run that joined it has ended. Every run holds the folder shared
// (Join) while it lives. When its own work is over, the embedding one takes the folder alone (Participant.Last). That
// waits for all others; only then it stops serving. The kernel releases the locks of a process however it ends.
//
// # Failure
//
// An announcement that is held and can't be read is an error, never "nobody serves". A lock that can't be taken is an
// error, unless somebody holds it, and nothing is started. The ledger's own lock keeps two apart that both find
// nobody.
//
// # Caveats
//
// Locks are advisory (flock), so the folder must be on a local disk.
package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// FileName is the announcement's name in the data folder.
const FileName = "serving.json"

// maxFile bounds an announcement that is read.
const maxFile = 64 << 10

// State is what a serving process says of itself.
type State struct {
	PID int `json:"pid"`
	// Admin is the admin API's address, as the client takes it.
	Admin string `json:"admin"`
	// Proxy is the proxy's host:port.
	Proxy string `json:"proxy"`
	// TokenFile holds the operator's token.
	TokenFile string `json:"token_file"`
	// Certificate is the PEM file of the certificate that the admin API shows; empty for
	// an API in clear.
	Certificate string `json:"certificate,omitempty"`
	// Embedded says that a run holds the proxy, and that it ends with the runs.
	Embedded bool `json:"embedded"`
}

// Announcement is a published State. Withdraw it before serving ends.
type Announcement struct {
	file *os.File
	name string
}

// Announce publishes s in a data folder. The file appears whole, and locked.
func Announce(dir string, s State) (*Announcement, error) {
	f, err := os.CreateTemp(dir, ".serving-*")
	if err != nil {
		return nil, fmt.Errorf("announce the proxy: %w", err)
	}
	name := filepath.Join(dir, FileName)
	err = errors.Join(flock(f, syscall.LOCK_EX|syscall.LOCK_NB), json.NewEncoder(f).Encode(s))
	if err == nil {
		err = os.Rename(f.Name(), name) //nolint:gosec // The operator names the data folder.
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("announce the proxy: %w", err), os.Remove(f.Name()), f.Close()) //nolint:gosec // The operator names the data folder.
	}
	return &Announcement{file: f, name: name}, nil
}

// Withdraw removes the announcement, if a later process didn't replace it.
func (a *Announcement) Withdraw() error {
	ours, err := a.file.Stat()
	if there, statErr := os.Stat(a.name); err == nil && statErr == nil && os.SameFile(ours, there) {
		err = os.Remove(a.name)
	}
	return errors.Join(err, a.file.Close())
}

// Find returns the State of the process that serves a data folder, nil if none
// does.
func Find(dir string) (*State, error) {
	f, err := os.Open(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a running proxy: %w", err)
	}
	defer func() { _ = f.Close() }()
	switch err := flock(f, syscall.LOCK_SH|syscall.LOCK_NB); {
	case err == nil:
		return nil, nil // Closing lets the lock go.
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return nil, fmt.Errorf("look for a running proxy: lock %s: %w", f.Name(), err)
	}
	s := new(State)
	if err := json.NewDecoder(io.LimitReader(f, maxFile)).Decode(s); err != nil {
		return nil, fmt.Errorf("look for a running proxy: %s: %w", f.Name(), err)
	}
	return s, nil
}

// flock is the system's, without interruptions.
func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

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
