package stripe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/vendorkey"
)

// Stripe is the fake. Its objects are what its log says.
type Stripe struct {
	keys *vendorkey.Keys

	mu       sync.Mutex
	settings Settings
	refunds  []Refund // oldest first
}

// Settings are what the fake can be told.
type Settings struct {
	// KeyWindow is how long a key is remembered.
	KeyWindow script.Duration `json:"key_window"`
	// ListLag is how long the listing doesn't show a new refund.
	ListLag script.Duration `json:"list_lag"`
	// PaymentAmount is what can be refunded of each payment.
	PaymentAmount int64 `json:"payment_amount"`
}

// Defaults returns the settings named in the package comment.
func Defaults() Settings {
	return Settings{KeyWindow: script.Duration(24 * time.Hour), PaymentAmount: 1_000_000}
}

// New returns the API with these settings.
func New(settings Settings) *Stripe {
	return &Stripe{settings: settings, keys: vendorkey.New(settings.KeyWindow.Std())}
}

// Name returns "stripe".
func (s *Stripe) Name() string { return "stripe" }

// Adjust changes the settings that the JSON object names.
func (s *Stripe) Adjust(settings []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.settings
	dec := json.NewDecoder(bytes.NewReader(settings))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&next); err != nil {
		return fmt.Errorf("stripe: settings: %w", err)
	}
	if next.KeyWindow < 0 || next.ListLag < 0 || next.PaymentAmount <= 0 {
		return errors.New("stripe: settings: durations must not be negative, payment_amount must be above 0")
	}
	s.settings = next
	s.keys.SetWindow(next.KeyWindow.Std())
	return nil
}

// Identity names a refund by its payment and, if it has one, its reference.
func (s *Stripe) Identity(r *server.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return ""
	}
	form, err := url.ParseQuery(string(r.Body))
	payment := cmp.Or(form.Get("payment_intent"), form.Get("charge"))
	if r.Path != "/v1/refunds" || err != nil || payment == "" {
		return r.Method + " " + r.Path
	}
	return identity(payment, form.Get("metadata[refund_ref]"))
}

func identity(payment, ref string) string {
	if ref == "" {
		return "refund:" + payment
	}
	return "refund:" + payment + ":" + ref
}

// Restore takes up the refunds and keys of earlier lives.
func (s *Stripe) Restore(events []oracle.Event) error {
	s.keys.Restore(events)
	for _, e := range events {
		if e.Kind != oracle.KindEffect {
			continue
		}
		var stored stored
		if err := json.Unmarshal(e.Details, &stored); err != nil {
			return fmt.Errorf("stripe: effect in line %d: %w", e.Seq, err)
		}
		stored.Refund.account, stored.Refund.at = stored.Account, stored.At
		s.refunds = append(s.refunds, stored.Refund)
	}
	return nil
}

// Serve answers a request.
func (s *Stripe) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	answer, err := s.route(ctx, c)
	if err != nil {
		return nil, err
	}
	if answer.Header == nil {
		answer.Header = http.Header{}
	}
	answer.Header.Set("Request-Id", "req_"+c.ID)
	if key := c.Header.Get("Idempotency-Key"); key != "" {
		answer.Header.Set("Idempotency-Key", key)
	}
	return answer, nil
}

func (s *Stripe) route(ctx context.Context, c *server.Call) (*server.Answer, error) {
	id, single := strings.CutPrefix(c.Path, "/v1/refunds/")
	switch {
	case c.Header.Get("Authorization") == "":
		return problem(http.StatusUnauthorized, "invalid_request_error", "", "You did not provide an API key.", ""), nil
	case c.Path == "/v1/refunds" && c.Method == http.MethodPost:
		return s.refund(ctx, c)
	case c.Path == "/v1/refunds" && c.Method == http.MethodGet:
		return s.list(c), nil
	case single && c.Method == http.MethodGet:
		return s.find(c, id), nil
	}
	return problem(http.StatusNotFound, "invalid_request_error", "", "Unrecognized request URL ("+c.Method+": "+c.Path+").", ""), nil
}

func problem(status int, kind, code, message, param string) *server.Answer {
	e := map[string]string{"type": kind, "message": message}
	if code != "" {
		e["code"] = code
	}
	if param != "" {
		e["param"] = param
	}
	return server.JSON(status, map[string]any{"error": e})
}
