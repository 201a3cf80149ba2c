package stripe

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/vendorkey"
)

// Refund is a refund as the API shows it.
type Refund struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Charge        *string           `json:"charge"`
	Created       int64             `json:"created"`
	Currency      string            `json:"currency"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent *string           `json:"payment_intent"`
	Reason        *string           `json:"reason"`
	Status        string            `json:"status"`

	account string
	at      time.Time
}

// stored is a refund with what the API doesn't show, as the log holds it.
type stored struct {
	Refund  Refund    `json:"refund"`
	Account string    `json:"account,omitempty"`
	At      time.Time `json:"at"`
}

func (r Refund) payment() string {
	switch {
	case r.PaymentIntent != nil:
		return *r.PaymentIntent
	case r.Charge != nil:
		return *r.Charge
	}
	return ""
}

// maxKey is the longest idempotency key.
const maxKey = 255

const (
	badRequest = "invalid_request_error"
	keyError   = "idempotency_error"
)

// refund takes in the key before it looks at the parameters, as parameters that
// are wrong leave nothing kept.
func (s *Stripe) refund(ctx context.Context, c *server.Call) (*server.Answer, error) {
	key, account := c.Header.Get("Idempotency-Key"), accountOf(c)
	if key == "" {
		return s.execute(ctx, c, "")
	}
	if len(key) > maxKey {
		return problem(http.StatusBadRequest, badRequest, "", "Idempotency keys may be at most 255 characters.", ""), nil
	}
	meaning, kept := s.keys.Begin(account, key, c.Digest, c.Now())
	switch meaning {
	case vendorkey.Fresh:
		return s.execute(ctx, c, key)
	case vendorkey.Replay:
		return replay(kept), nil
	case vendorkey.Busy:
		return problem(http.StatusConflict, keyError, "idempotency_key_in_use", "There is currently another in-progress request using this key.", ""), nil
	case vendorkey.Mismatch:
		return problem(http.StatusBadRequest, keyError, "", "The key was first used with other parameters.", ""), nil
	}
	return nil, fmt.Errorf("stripe: key meaning %d", meaning)
}

// accountOf is whose data a request is about: Stripe-Context supersedes Stripe-Account, and
// without either it is the credential's own account, here "".
func accountOf(c *server.Call) string {
	if context := c.Header.Get("Stripe-Context"); context != "" {
		return context
	}
	return c.Header.Get("Stripe-Account")
}

func replay(kept oracle.Kept) *server.Answer {
	a := &server.Answer{Status: kept.Status, Header: http.Header{"Idempotent-Replayed": {"true"}}, Body: kept.Body}
	for name, value := range kept.Header {
		a.Header.Set(name, value)
	}
	return a
}

// execute makes the refund. Whatever leaves nothing kept frees the key.
func (s *Stripe) execute(ctx context.Context, c *server.Call, key string) (*server.Answer, error) {
	account := accountOf(c)
	settled := false
	defer func() {
		if key != "" && !settled {
			s.keys.Drop(account, key)
		}
	}()
	refund, bad := parse(c)
	if bad != nil {
		return bad, nil
	}
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := c.Own
	if !c.NoEffect {
		if bad := s.fill(&refund, account, c.Now()); bad != nil {
			return bad, nil
		}
		if answer == nil {
			answer = server.JSON(http.StatusOK, refund)
		}
	}
	var kept *oracle.Kept
	if key != "" {
		kept = vendorkey.Kept(account, key, c.Digest, answer.Status, answer.Header, answer.Body)
	}
	if err := s.record(c, refund, kept); err != nil {
		return nil, err
	}
	if settled = kept != nil; settled {
		s.keys.Keep(*kept, c.Now())
	}
	return answer, nil
}

// record makes durable what there is to: the refund, or a failure that is kept.
func (s *Stripe) record(c *server.Call, refund Refund, kept *oracle.Kept) error {
	name := s.Identity(c.Request)
	if !c.NoEffect {
		if err := c.Commit(name, stored{Refund: refund, Account: refund.account, At: refund.at}, kept); err != nil {
			return err
		}
		s.refunds = append(s.refunds, refund)
		return nil
	}
	if kept == nil {
		return nil
	}
	return c.Keep(name, kept)
}

// fill completes the refund with what the API decides, or says why it can't be.
func (s *Stripe) fill(r *Refund, account string, now time.Time) *server.Answer {
	left := s.settings.PaymentAmount
	for _, other := range s.refunds {
		if other.account == account && other.payment() == r.payment() {
			left -= other.Amount
		}
	}
	if r.Amount == 0 {
		r.Amount = left
	}
	if left <= 0 || r.Amount > left {
		return problem(http.StatusBadRequest, badRequest, "charge_already_refunded", "The refund is greater than what is left of the payment.", "amount")
	}
	r.ID = fmt.Sprintf("re_%08d", len(s.refunds)+1)
	r.Object, r.Currency, r.Status, r.Created = "refund", "eur", "succeeded", now.Unix()
	r.account, r.at = account, now
	return nil
}

// parse reads the form; unknown parameters are refused, as the vendor does.
func parse(c *server.Call) (Refund, *server.Answer) {
	refuse := func(code, param, message string) (Refund, *server.Answer) {
		return Refund{}, problem(http.StatusBadRequest, badRequest, code, message, param)
	}
	form, err := url.ParseQuery(string(c.Body))
	if err != nil {
		return refuse("", "", "The body is not a form.")
	}
	r := Refund{Metadata: map[string]string{}}
	for name := range form {
		value := form.Get(name)
		switch {
		case name == "charge":
			r.Charge = &value
		case name == "payment_intent":
			r.PaymentIntent = &value
		case name == "reason":
			r.Reason = &value
		case name == "amount":
			if r.Amount, err = strconv.ParseInt(value, 10, 64); err != nil || r.Amount <= 0 {
				return refuse("parameter_invalid_integer", name, "Invalid positive integer: "+value)
			}
		case strings.HasPrefix(name, "metadata[") && strings.HasSuffix(name, "]"):
			r.Metadata[name[len("metadata["):len(name)-1]] = value
		case strings.HasPrefix(name, "expand["):
		default:
			return refuse("parameter_unknown", name, "Received unknown parameter: "+name)
		}
	}
	if r.payment() == "" {
		return refuse("parameter_missing", "charge", "One of charge or payment_intent is required.")
	}
	return r, nil
}
