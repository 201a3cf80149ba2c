package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Webhook posts messages, signed as Standard Webhooks (standardwebhooks.com) says.
type Webhook struct {
	name string
	// url and key give the secrets, as they are now.
	url, key func() (string, error)
	now      func() time.Time
	client   *http.Client
}

// NewWebhook makes a destination. The function url returns its address. The function key returns the signing key in the
// form whsec_ and base64; nil for unsigned messages. Redirects aren't followed, and the proxies of the environment
// aren't used: they may be this one. Messages are rare, and each has a connection of its own. One that was kept may be
// dead without a sign of it.
func NewWebhook(name string, url, key func() (string, error), roots *http.Transport, now func() time.Time) *Webhook {
	if roots == nil {
		roots = &http.Transport{ForceAttemptHTTP2: true}
	}
	roots.DisableKeepAlives = true
	return &Webhook{
		name: name, url: url, key: key, now: now,
		client: &http.Client{
			Transport: roots, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Name implements Destination.
func (w *Webhook) Name() string { return w.name }

// maxAnswer is how much of an answer is read, so that its sender isn't cut off.
const maxAnswer = 64 << 10

// Deliver implements Destination.
func (w *Webhook) Deliver(ctx context.Context, m Message, body []byte) error {
	address, err := w.url()
	if err != nil {
		return fmt.Errorf("its url: %w", err)
	}
	target, err := ParseURL(address)
	if err != nil {
		return fmt.Errorf("its url %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("its url can't be asked")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "keep-proxy")
	if err := w.sign(r.Header, m.ID, body); err != nil {
		return err
	}
	answer, err := w.client.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", target.Host, withoutURL(err))
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("%s answered %d", target.Host, answer.StatusCode)
	}
	return nil
}

// withoutURL leaves out the address that a client's error repeats.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// sign sets the fields of Standard Webhooks: id, time, and the signature over both and
// the body.
func (w *Webhook) sign(h http.Header, id string, body []byte) error {
	at := strconv.FormatInt(w.now().Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", at)
	if w.key == nil {
		return nil
	}
	text, err := w.key()
	if err != nil {
		return fmt.Errorf("its signing key: %w", err)
	}
	key, err := ParseKey(text)
	if err != nil {
		return fmt.Errorf("its signing key %w", err)
	}
	mac := hmac.New(sha256.New, key)
	// A hash takes everything.
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}

// ParseURL reads the address of a webhook. Its error doesn't repeat it.
func ParseURL(address string) (*url.URL, error) {
	target, err := url.Parse(address)
	if err != nil || target.Host == "" || target.Scheme != "https" && target.Scheme != "http" {
		return nil, errors.New("is none: write https://HOST/PATH")
	}
	return target, nil
}

// ParseKey reads a signing key as Standard Webhooks writes it. Its error doesn't repeat it.
func ParseKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("is not whsec_ and base64")
	}
	return key, nil
}
