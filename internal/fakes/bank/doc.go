// Package bank is the demo's bank: it moves money, it can be asked about
// transfers, and it sends notices that nobody can ask about.
//
// All bodies are JSON. An error is {"error": {"code": CODE, "message": TEXT}}.
//
//	POST /transfers
//	    {"from", "to", "amount", "currency", "reference", "note"?, "metadata"?}
//	    amount is a whole number of minor units above 0, currency three capital
//	    letters, metadata a map of strings. → 201, Location, and the transfer:
//	    {"id": "tr_000001", "from", "to", "amount", "currency", "reference",
//	    "note", "metadata": {}, "idempotency_key": "", "status": "booked",
//	    "created_at": RFC 3339}
//	    400 invalid_json; 422 invalid_transfer; 402 insufficient_funds (accounts
//	    that settings name; others are made on demand and may go below 0).
//	    Idempotency-Key: a repeat inside the window gives the first answer with
//	    Idempotent-Replayed: true; 409 key_in_use while the first still runs;
//	    422 key_reused for another body; 400 invalid_key beyond 255 characters.
//	    Only what the bank itself answered is kept, its own failures (500)
//	    included only if the transfer was booked.
//	GET /transfers?reference=&from=&limit=&cursor=
//	    → 200 {"items": [...], "has_more": bool, "next_cursor": ""}, oldest
//	    first, limit 1 to 100 (default 20), cursor the next_cursor of the page
//	    before. Strongly consistent unless list_lag is set.
//	GET /transfers/{id} → 200 the transfer (never lags), 404 no_transfer
//	DELETE /transfers/{id} → 204: it is cancelled, and no read shows it any more;
//	    404 no_transfer
//	POST /transfers/{id}/reversals → 201 {"transfer", "status": "reversed"}: the
//	    money is paid back, and again for each request; 404 no_transfer
//	GET /balance?account= → 200 {"account", "currency", "balance"}; without
//	    account {"items": [...]}; 404 no_account
//	POST /notices
//	    {"to", "text", "reference"} → 202 {"id": "no_000001", "status": "queued"}
//	    422 invalid_notice. There is no key, and no read: GET is 405.
//
// Identities in the log: transfer:REFERENCE, notice:REFERENCE, cancel:ID and
// reversal:ID; for a body
// that names none, METHOD and path.
//
// Settings: {"native_keys": bool (true), "key_window": "24h", "list_lag": "0s",
// "accounts": {NAME: opening minor units of EUR}}. Without native keys the header is
// ignored, as by a bank that knows none. Settings are not part of the log.
package bank
