package bank

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"keep-proxy/internal/fakes/script"
)

// Settings are what a bank can be told. Use [Defaults]: the zero Settings is a
// bank that knows no keys.
type Settings struct {
	// NativeKeys lets the bank honour Idempotency-Key.
	NativeKeys bool `json:"native_keys"`
	// KeyWindow is how long a key is remembered.
	KeyWindow script.Duration `json:"key_window"`
	// ListLag is how long the listing doesn't show a new transfer.
	ListLag script.Duration `json:"list_lag"`
	// Accounts are the accounts that can't go below 0, with what they open
	// with, in minor units.
	Accounts map[string]int64 `json:"accounts"`
}

// Defaults returns native keys for 24 hours and no lag.
func Defaults() Settings {
	return Settings{NativeKeys: true, KeyWindow: script.Duration(24 * time.Hour)}
}

// Adjust changes the settings that the JSON object names.
func (b *Bank) Adjust(settings []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.settings
	next.Accounts = maps.Clone(b.settings.Accounts)
	dec := json.NewDecoder(bytes.NewReader(settings))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&next); err != nil {
		return fmt.Errorf("bank: settings: %w", err)
	}
	if next.KeyWindow < 0 || next.ListLag < 0 {
		return errors.New("bank: settings: durations must not be negative")
	}
	b.settings = next
	b.keys.SetWindow(next.KeyWindow.Std())
	return nil
}

func (b *Bank) current() Settings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settings
}
