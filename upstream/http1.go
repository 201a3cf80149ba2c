package upstream

import (
	"errors"
	"sync"

	"golang.org/x/net/http2"
)

// HTTP1 remembers upstreams that chose HTTP/2 and then asked for HTTP/1.1 (RFC 9113 §7,
// HTTP_1_1_REQUIRED). Servers do so for authentication that holds for a connection. Later
// connections to them are HTTP/1.1. Its zero value is ready.
type HTTP1 struct {
	mu    sync.RWMutex
	addrs map[string]bool
}

// require has the next connections to addr, which is "host:port", speak HTTP/1.1.
func (h *HTTP1) require(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.addrs == nil || len(h.addrs) >= mostOthers {
		h.addrs = map[string]bool{}
	}
	h.addrs[addr] = true
}

func (h *HTTP1) required(addr string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.addrs[addr]
}

// protocols are those to offer to addr.
func (h *HTTP1) protocols(addr string) []string {
	if h.required(addr) {
		return []string{"http/1.1"}
	}
	return []string{"h2", "http/1.1"}
}

// wantsHTTP1 reports whether an error of net/http's transport says that the upstream asks for HTTP/1.1.
func wantsHTTP1(err error) bool {
	reset, ok := errors.AsType[http2.StreamError](err)
	return ok && reset.Code == http2.ErrCodeHTTP11Required
}
