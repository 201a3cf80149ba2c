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

// authorised returns the request with the credential set, in place of whatever
// the field held.
func authorised(request *rules.Request, name, value string) (*rules.Request, error) {
	if name == "" {
		return request, nil
	}
	header := withField(request.Header, name, value)
	with, refusal := request.WithHeader(header)
	if refusal != nil {
		return nil, errors.New("the configured credential is no valid header field")
	}
	return with, nil
}

// withField is a copy of header in which the field has this value alone. The values of the
// others are shared.
func withField(header http.Header, name, value string) http.Header {
	header = maps.Clone(header)
	if header == nil {
		header = http.Header{}
	}
	header.Set(name, value)
	return header
}

// sameAccount makes sure that what is asked with the credentials of now is asked
// about the account of the record.
func (r *Reconciler) sameAccount(ctx context.Context, t *try) (reached bool, err error) {
	if !t.connector.HasAccount {
		return true, nil
	}
	if t.connector.AccountRead != nil {
		account, err := r.Account(ctx, t.connector, t.request)
		if err != nil {
			return !errors.Is(err, errUnreached), fmt.Errorf("%w: %w", t.untoldAccount(), err)
		}
		t.request = t.request.WithAccount(t.connector, account)
	}
	return true, accountIs(t)
}

// untoldAccount says that nobody knows whose data would be asked about.
func (t *try) untoldAccount() error {
	if t.credential.name == "" {
		return errors.New("no credentials are configured for " + t.mutation.Connector + " (connectors.settings), and without any the account can't be told")
	}
	return errors.New("the account of the configured credentials can't be told")
}

// accountIs compares the account of the request with the record's.
func accountIs(t *try) error {
	account, refusal := t.owner.Account(t.request, t.match)
	switch {
	case refusal != nil:
		return t.untoldAccount()
	case account != t.mutation.Account && t.credential.name == "":
		return errors.New("no credentials are configured for " + t.mutation.Connector + " (connectors.settings), and without any it is another account")
	case account != t.mutation.Account:
		return errors.New("the configured credentials are for another account")
	}
	return nil
}

// accountFields are the request's header fields that tell its account. Without one of them it would
// be another account, or none. They are found out for the first read.
func (t *try) accountFields() http.Header {
	if t.account != nil {
		return t.account
	}
	told := http.Header{}
	for name, values := range t.request.Header {
		if !t.connector.AccountReads(name) {
			continue
		}
		header := maps.Clone(t.request.Header)
		header.Del(name)
		if !accountStays(t, header) {
			told[name] = values
		}
	}
	t.account = told
	return told
}

// accountStays reports whether the request with this header would still be for the
// account of the record.
func accountStays(t *try, header http.Header) bool {
	changed, refusal := t.request.WithHeader(header)
	if refusal != nil {
		return false
	}
	if t.connector.AccountRead != nil {
		// That no field of a request tells it is why it is asked for; see underAccount.
		changed = changed.WithAccount(t.connector, t.mutation.Account)
	}
	account, refusal := t.owner.Account(changed, t.match)
	return refusal == nil && account == t.mutation.Account
}

// underAccount adds to a read, which has its credential, the fields that tell the
// account. A read that would be sent under another one is an error: what isn't there
// may be elsewhere.
func (r *Reconciler) underAccount(ctx context.Context, t *try, read http.Header) error {
	if !t.connector.HasAccount {
		return nil
	}
	if t.connector.AccountRead != nil {
		return r.asksUnderAccount(ctx, t, read)
	}
	merged := t.request.Header.Clone()
	for name, values := range read {
		// How the read's own content is written says nothing about the account.
		if name != "Content-Type" {
			merged[name] = values
		}
	}
	if !accountStays(t, merged) {
		return fmt.Errorf("%w: it asks under another account", errUnaskable)
	}
	for name, values := range t.accountFields() {
		if len(read[name]) == 0 {
			read[name] = values
		}
	}
	return nil
}

// asksUnderAccount asks the API whose data a read with these fields would show.
func (r *Reconciler) asksUnderAccount(ctx context.Context, t *try, read http.Header) error {
	request, refusal := rules.Rebuild(http.MethodGet, t.request.URL(), read, nil)
	if refusal != nil {
		return fmt.Errorf("%w: its header fields can't be sent", errUnaskable)
	}
	account, err := r.Account(ctx, t.connector, request)
	switch {
	case err != nil:
		return fmt.Errorf("the account that it asks under can't be told: %w", err)
	case account != t.mutation.Account:
		return fmt.Errorf("%w: it asks under another account", errUnaskable)
	}
	return nil
}

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
	request := &upstream.Request{Method: ask.Method, URL: target, Header: ask.Header, Total: r.settings.Ask}
	if ask.Body != nil {
		request.Body = upstream.Bytes(ask.Body)
	}
	got := r.wire.send(ctx, request, r.settings.MaxAnswer)
	if !got.evidence.Head {
		return "", untoldError{fmt.Errorf("%w: %w", errUnreached, &upstream.Error{Class: got.evidence.ErrorClass, Text: got.evidence.Error})}
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
	for _, s := range []string{c.Hash, ask.Method, ask.Scheme, ask.Authority, ask.Target, string(ask.Body)} {
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
