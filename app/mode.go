package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
	"keep-proxy/proxy"
)

// modeFile holds a pause, in the data folder. What was stopped on purpose stays so when the process is started again.
const modeFile = "paused.json"

// modes is whether the program serves. It implements admin.Modes. Its zero value serves.
type modes struct {
	app *App

	// one lets commands happen one after another.
	one sync.Mutex
	// now is nil while serving.
	now atomic.Pointer[wire.Mode]
}

// open finds out whether an earlier process was paused. A file that can't be read is
// a pause too: somebody wrote it.
func (m *modes) open() {
	text, err := os.ReadFile(m.file())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	paused := wire.Mode{}
	if err == nil {
		err = json.Unmarshal(text, &paused)
	}
	if err != nil {
		paused = wire.Mode{Since: m.app.clock.Now(), Reason: "what " + m.file() + " says can't be read: " + err.Error()}
	}
	paused.Mode = wire.ModePaused
	m.now.Store(&paused)
	m.app.note("paused since " + paused.Since.UTC().Format("2006-01-02 15:04:05Z") + ": " + paused.Reason +
		"; no mutation is sent until keep-proxy resume")
}

func (m *modes) file() string { return filepath.Join(m.app.config.Ledger.Dir, modeFile) }

// Mode implements admin.Modes.
func (m *modes) Mode() wire.Mode {
	out := wire.Mode{Mode: wire.ModeServing}
	if now := m.now.Load(); now != nil {
		out = *now
	}
	out.Requests, out.Mutations = m.app.proxy.UnderWay()
	out.Tries = m.app.reconciler.Working()
	return out
}

// SetMode implements admin.Modes. What keeps work back holds before it is written down; what lets it continue, after.
// An error leaves the safer of the two.
func (m *modes) SetMode(_ context.Context, mode string, q wire.SetMode) (wire.Mode, error) {
	m.one.Lock()
	defer m.one.Unlock()
	next := &wire.Mode{Mode: mode, Since: m.app.clock.Now(), Actor: q.Actor, Reason: q.Reason}
	var err error
	switch mode {
	case wire.ModePaused:
		m.now.Store(next)
		err = m.keep(next)
	case wire.ModeDraining:
		// A pause that came before ends with resume alone.
		m.now.Store(next)
	case wire.ModeServing:
		if err = m.forget(); err == nil {
			m.now.Store(nil)
			m.app.reconciler.Kick()
		}
	default:
		return wire.Mode{}, fmt.Errorf("there is no mode %q", mode)
	}
	e := ledger.Event{Actor: ledger.PersonActor(q.Actor), What: mode, Why: q.Reason}
	if err != nil {
		e.Evidence = err.Error()
		m.app.options.Log.Error().Err(err).Str("mode", mode).Msg("the mode can't be kept")
	} else {
		m.app.options.Log.Warn().Str("mode", mode).Str("actor", q.Actor).Str("reason", q.Reason).Msg("mode")
	}
	m.app.ledger.Refuse(e)
	if err != nil {
		return wire.Mode{}, fmt.Errorf("%s: %w", mode, err)
	}
	return m.Mode(), nil
}

// keep writes a pause down.
func (m *modes) keep(p *wire.Mode) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(m.file()), ".paused-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), m.file())
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(m.file()))
}

// forget removes what was written down. If that doesn't last, the next process is paused.
func (m *modes) forget() error {
	if err := os.Remove(m.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncFolder makes a change of names in a folder last.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// halt is what the front door keeps back.
func (m *modes) halt() proxy.Halt {
	now := m.now.Load()
	if now == nil {
		return proxy.Halt{}
	}
	return proxy.Halt{Sending: true, Everything: now.Mode != wire.ModePaused, Why: now.Reason}
}

// halted reports whether the reconcilers stand still.
func (m *modes) halted() bool { return m.now.Load() != nil }
