package badgerstore

import (
	"path/filepath"
	"sync/atomic"
)

// heldLog holds the next sync of the engine's log back.
type heldLog struct {
	armed      atomic.Bool
	begun, end chan struct{}
}

func newHeldLog(c *Config) *heldLog {
	h := &heldLog{begun: make(chan struct{}), end: make(chan struct{})}
	c.synced = func(path string) error {
		if filepath.Ext(path) == logSuffix && h.armed.CompareAndSwap(true, false) {
			close(h.begun)
			<-h.end
		}
		return nil
	}
	return h
}

func (h *heldLog) arm() { h.armed.Store(true) }

func (h *heldLog) letGo() { close(h.end) }
