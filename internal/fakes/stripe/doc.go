// Package stripe is a fake of the part of Stripe's v1 API that refunds need. It is made from Stripe's public
// documentation of refunds, pagination and idempotent requests. What differs from the vendor is said here.
//
// Every request needs Authorization (any Bearer or Basic credentials), else
// 401. Bodies are forms, errors {"error": {"type", "code"?, "message",
// "param"?}}. Stripe-Account, or Stripe-Context in its place, separates objects
// and keys.
//
//	POST /v1/refunds
//	    charge or payment_intent, amount?, reason?, metadata[...]? → 200 refund:
//	    {"id": "re_…", "object": "refund", "amount", "charge", "created",
//	    "currency", "metadata", "payment_intent", "reason", "status": "succeeded"}
//	    400 parameter_missing, parameter_unknown, parameter_invalid_integer,
//	    charge_already_refunded (each payment holds settings.payment_amount;
//	    without amount the rest of it is refunded).
//	    Idempotency-Key: once the endpoint has begun to execute, status and body
//	    are kept, a 500 too. Repeats get them with Idempotent-Replayed: true.
//	    Nothing is kept of a request with wrong parameters, over the payment, or
//	    in conflict. For other parameters under the same key, 400
//	    idempotency_error. While the first still runs, 409
//	    idempotency_key_in_use. Above 255 characters, 400.
//	GET /v1/refunds?charge=&payment_intent=&limit=&starting_after=&ending_before=
//	    → 200 {"object": "list", "url", "has_more", "data": [...]}, newest
//	    first, limit 1 to 100 (default 10); 400 resource_missing for an unknown
//	    starting_after. Strongly consistent unless settings.list_lag says less.
//	GET /v1/refunds/{id} → 200, 404 resource_missing
//
// Everything else is 404. Identity in the log: refund:PAYMENT, or
// refund:PAYMENT:REF with metadata[refund_ref]; PAYMENT is the payment intent,
// or the charge.
//
// Settings: {"key_window": "24h", "list_lag": "0s", "payment_amount": 1000000}.
package stripe
