package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"keep-proxy/rules"
)

// maxVersions is how many stored versions of connectors stay loaded. More than a
// few in use at once is unusual, and loading one again takes milliseconds.
const maxVersions = 64

// versions loads stored versions of connectors by the hash of their file, with the
// user's settings of now. It is safe for concurrent use.
type versions struct {
	content  func(ctx context.Context, hash string) ([]byte, error)
	settings []rules.Settings
	defaults rules.Defaults

	mu     sync.Mutex
	loaded map[string]*rules.Connector
}

// use puts other settings in force.
func (v *versions) use(settings []rules.Settings) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settings, v.loaded = settings, nil
}

// connector implements proxy.Pinned, and what a reconciler asks for.
func (v *versions) connector(ctx context.Context, hash string) (*rules.Connector, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.loaded[hash]; c != nil {
		return c, nil
	}
	content, err := v.content(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("stored rule file: %w", err)
	}
	c, findings := rules.LoadPinned(content, v.settings, v.defaults)
	if c == nil {
		return nil, unloadable(findings)
	}
	if v.loaded == nil || len(v.loaded) >= maxVersions {
		v.loaded = map[string]*rules.Connector{}
	}
	v.loaded[hash] = c
	return c, nil
}

// unloadable names the first error, without the value it is about.
func unloadable(fs rules.Findings) error {
	for _, f := range fs {
		if f.Severity != rules.SeverityWarning {
			return fmt.Errorf("the stored rule file does not load: %s at %s", f.Code, cmp.Or(f.Key, "its start"))
		}
	}
	return errors.New("the stored rule file does not load")
}
