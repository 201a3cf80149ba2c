package serving

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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
	err = write(f, s)
	name := filepath.Join(dir, FileName)
	if err == nil {
		err = os.Rename(f.Name(), name) //nolint:gosec // The operator names the data folder.
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("announce the proxy: %w", err), os.Remove(f.Name()), f.Close()) //nolint:gosec // The operator names the data folder.
	}
	return &Announcement{file: f, name: name}, nil
}

func write(f *os.File, s State) error {
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	return json.NewEncoder(f).Encode(s)
}

// Withdraw removes the announcement, if it is still this one.
func (a *Announcement) Withdraw() error {
	var err error
	if a.stands() {
		err = os.Remove(a.name)
	}
	return errors.Join(err, a.file.Close())
}

// stands reports whether the folder's announcement is this one: a later process
// may have replaced it.
func (a *Announcement) stands() bool {
	ours, err := a.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(a.name)
	return err == nil && os.SameFile(ours, there)
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
