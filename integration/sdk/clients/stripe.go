package main

import (
	"context"

	"github.com/stripe/stripe-go/v85"
)

// stripeClient refunds a payment.
func stripeClient(ctx context.Context, word string) (string, error) {
	params := &stripe.RefundCreateParams{PaymentIntent: stripe.String("pi_" + word), Amount: stripe.Int64(500)}
	made, err := stripe.NewClient("sk_test_none").V1Refunds.Create(ctx, params)
	if err != nil {
		return "", err
	}
	return made.ID, nil
}
