package reconcilers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// maxAccounts bounds how many answers are remembered.
const maxAccounts = 1000

// errUnreached is a read that got no answer at all.
var errUnreached = errors.New("the API could not be reached")

// untoldError is of an account that the API didn't tell, and may tell later.
type untoldError struct{ error }

func (e untoldError) Unwrap() error { return e.error }

// accounts remembers whose credentials are whose, by digests of what was asked: the
// credentials themselves aren't kept.
type accounts struct {
	clock clock.Clock
	mu    sync.Mutex
	known map[[sha256.Size]byte]knownAccount
}

type knownAccount struct {
	name string
	// until is on the boot-time clock: a token changes hands while the machine sleeps too.
	until time.Duration
}

// of is what is remembered.
func (a *accounts) of(key [sha256.Size]byte) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.known[key]
	if !ok || a.clock.Boot() >= known.until {
		return "", false
	}
	return known.name, true
}

// remember keeps an answer. When there are too many, those that are over go, else any one.
func (a *accounts) remember(key [sha256.Size]byte, name string, asked, holds time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[[sha256.Size]byte]knownAccount{}
	}
	if len(a.known) >= maxAccounts {
		now := a.clock.Boot()
		maps.DeleteFunc(a.known, func(_ [sha256.Size]byte, k knownAccount) bool { return now >= k.until })
	}
	for old := range a.known {
		if len(a.known) < maxAccounts {
			break
		}
		delete(a.known, old)
	}
	a.known[key] = knownAccount{name, asked + holds}
}

// Account asks the API of a connector with AccountRead whose data req changes, with the
// credentials that req carries. The answer holds for requests with the same ones, for as
// long as the rule says; a failure isn't remembered. The error holds no credential.
func (r *Reconciler) Account(ctx context.Context, c *rules.Connector, req *rules.Request) (string, error) {
	ask, err := c.AccountRead.Ask(req)
	if err != nil {
		return "", err
	}
	key := askKey(c, ask)
	if name, known := r.accounts.of(key); known {
		return name, nil
	}
	target, err := url.ParseRequestURI(ask.Scheme + "://" + ask.Authority + ask.Target)
	if err != nil {
		return "", errors.New("its address is no URL")
	}
	asked := r.clock.Boot()
	got := r.wire.send(ctx, &upstream.Request{Method: ask.Method, URL: target, Header: ask.Header, Total: r.settings.Ask}, r.settings.MaxAnswer)
	if !got.evidence.Head {
		return "", untoldError{fmt.Errorf("%w (%s)", errUnreached, got.evidence.ErrorClass)}
	}
	name, err := c.AccountRead.Account(req, &rules.Response{Status: got.status, Header: got.header, Body: got.body, Complete: got.complete()})
	if err != nil {
		return "", untoldError{err}
	}
	r.accounts.remember(key, name, asked, c.AccountRead.Cache)
	return name, nil
}

// askKey is the digest of all that an answer may depend on.
func askKey(c *rules.Connector, ask *rules.Ask) [sha256.Size]byte {
	var b strings.Builder
	part := func(s string) { fmt.Fprintf(&b, "%d:%s", len(s), s) }
	for _, s := range []string{c.Hash, ask.Scheme, ask.Authority, ask.Target} {
		part(s)
	}
	for _, name := range slices.Sorted(maps.Keys(ask.Header)) {
		part(http.CanonicalHeaderKey(name))
		part(fmt.Sprint(len(ask.Header[name])))
		for _, v := range ask.Header[name] {
			part(v)
		}
	}
	return sha256.Sum256([]byte(b.String()))
}
