package bank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/vendorkey"
)

// Transfer is a booked transfer, as the bank shows it.
type Transfer struct {
	ID             string            `json:"id"`
	From           string            `json:"from"`
	To             string            `json:"to"`
	Amount         int64             `json:"amount"`
	Currency       string            `json:"currency"`
	Reference      string            `json:"reference"`
	Note           string            `json:"note"`
	Metadata       map[string]string `json:"metadata"`
	IdempotencyKey string            `json:"idempotency_key"`
	Status         string            `json:"status"`
	CreatedAt      string            `json:"created_at"`
	// Reversals is how often the money was paid back.
	Reversals int `json:"reversals,omitempty"`
}

// order is what a client may say of a transfer.
type order struct {
	From      string            `json:"from"`
	To        string            `json:"to"`
	Amount    int64             `json:"amount"`
	Currency  string            `json:"currency"`
	Reference string            `json:"reference"`
	Note      string            `json:"note"`
	Metadata  map[string]string `json:"metadata"`
}

var currency = regexp.MustCompile(`^[A-Z]{3}$`)

func (o order) check() error {
	switch {
	case o.From == "" || o.To == "" || o.From == o.To:
		return errors.New("from and to must be two accounts")
	case o.Amount <= 0:
		return errors.New("amount must be a whole number of minor units above 0")
	case !currency.MatchString(o.Currency):
		return errors.New("currency must be three capital letters")
	case o.Reference == "":
		return errors.New("reference is missing")
	}
	return nil
}

func decode(data []byte, into any) error { return json.Unmarshal(data, into) }

// maxKey is the longest idempotency key.
const maxKey = 255

// transfer takes in the key, if the bank knows keys, and books.
func (b *Bank) transfer(ctx context.Context, c *server.Call) (*server.Answer, error) {
	var o order
	if err := decode(c.Body, &o); err != nil {
		return problem(http.StatusBadRequest, "invalid_json", err.Error()), nil
	}
	if err := o.check(); err != nil {
		return problem(http.StatusUnprocessableEntity, "invalid_transfer", err.Error()), nil
	}
	key := c.Header.Get("Idempotency-Key")
	if key == "" || !b.current().NativeKeys {
		return b.book(ctx, c, o, "")
	}
	if len(key) > maxKey {
		return problem(http.StatusBadRequest, "invalid_key", "Idempotency-Key is longer than 255 characters"), nil
	}
	meaning, kept := b.keys.Begin("", key, c.Digest, c.Now())
	switch meaning {
	case vendorkey.Fresh:
		return b.book(ctx, c, o, key)
	case vendorkey.Replay:
		return replay(kept), nil
	case vendorkey.Busy:
		return problem(http.StatusConflict, "key_in_use", "a request with this Idempotency-Key is still running"), nil
	case vendorkey.Mismatch:
		return problem(http.StatusUnprocessableEntity, "key_reused", "this Idempotency-Key belongs to another request"), nil
	}
	return nil, fmt.Errorf("bank: key meaning %d", meaning)
}

func replay(kept oracle.Kept) *server.Answer {
	a := &server.Answer{Status: kept.Status, Header: http.Header{"Idempotent-Replayed": {"true"}}, Body: kept.Body}
	for name, value := range kept.Header {
		a.Header.Set(name, value)
	}
	return a
}

// book moves the money. A key under which nothing was kept is free again.
func (b *Bank) book(ctx context.Context, c *server.Call, o order, key string) (*server.Answer, error) {
	settled := false
	defer func() {
		if key != "" && !settled {
			b.keys.Drop("", key)
		}
	}()
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	if c.NoEffect {
		return c.Own, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, limited := b.settings.Accounts[o.From]; limited && b.holds(o.From, o.Currency) < o.Amount {
		return problem(http.StatusPaymentRequired, "insufficient_funds", o.From+" does not hold that much"), nil
	}
	t := b.draft(o, c, key)
	answer := server.JSON(http.StatusCreated, t, "Location", "/transfers/"+t.ID)
	if c.Own != nil {
		answer = c.Own
	}
	var kept *oracle.Kept
	if key != "" {
		kept = vendorkey.Kept("", key, c.Digest, answer.Status, answer.Header, answer.Body)
	}
	if err := c.Commit("transfer:"+o.Reference, t, kept); err != nil {
		return nil, err
	}
	b.booked = append(b.booked, t)
	if settled = kept != nil; settled {
		b.keys.Keep(*kept, c.Now())
	}
	return answer, nil
}

func (b *Bank) draft(o order, c *server.Call, key string) Transfer {
	t := Transfer{
		ID: fmt.Sprintf("tr_%06d", len(b.booked)+1), From: o.From, To: o.To, Amount: o.Amount, Currency: o.Currency,
		Reference: o.Reference, Note: o.Note, Metadata: o.Metadata, IdempotencyKey: key, Status: statusBooked, CreatedAt: stamp(c.Now()),
	}
	if t.Metadata == nil {
		t.Metadata = map[string]string{}
	}
	return t
}

// holds is what the account opened with and what came to it, less what left it.
func (b *Bank) holds(account, currency string) int64 {
	var sum int64
	if currency == openingCurrency {
		sum = b.settings.Accounts[account]
	}
	for _, t := range b.booked {
		if t.Currency != currency {
			continue
		}
		if t.From == account {
			sum -= t.moved()
		}
		if t.To == account {
			sum += t.moved()
		}
	}
	return sum
}
