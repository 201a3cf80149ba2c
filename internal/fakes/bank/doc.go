// Package bank is the demo's bank. It moves money, can be asked about transfers, and sends notices that nobody can ask
// about.
//
// All bodies are JSON. An error is {"error": {"code": CODE, "message": TEXT}}.
//
//	POST /transfers
//	    {"from", "to", "amount", "currency", "reference", "note"?, "metadata"?}.
//	    An amount is a whole number of minor units above 0. A currency is three
//	    capital letters, metadata a map of strings. → 201, Location, and the transfer:
//	    {"id": "tr_000001", "from", "to", "amount", "currency", "reference",
//	    "note", "metadata": {}, "idempotency_key": "", "status": "booked",
//	    "created_at": RFC 3339}.
//	    Else 400 invalid_json, 422 invalid_transfer or 402 insufficient_funds.
//	    Accounts that settings don't name are made on demand and may go below 0.
//	    With Idempotency-Key, a repeat inside the window gets the first answer with
//	    Idempotent-Replayed: true. While the first still runs, 409 key_in_use.
//	    For another body 422 key_reused, beyond 255 characters 400 invalid_key.
//	    Only what the bank itself answered is kept. A failure of its own (500) is
//	    kept only if the transfer was booked.
//	GET /transfers?reference=&from=&limit=&cursor=
//	    → 200 {"items": [...], "has_more": bool, "next_cursor": ""}, oldest
//	    first, limit 1 to 100 (default 20), cursor the next_cursor of the page
//	    before. Strongly consistent unless list_lag is set.
//	GET /transfers/{id} → 200 the transfer (never lags), 404 no_transfer.
//	DELETE /transfers/{id} → 204: it is cancelled, and no read shows it any more.
//	    Else 404 no_transfer.
//	POST /transfers/{id}/reversals → 201 {"transfer", "status": "reversed"}. The
//	    money is paid back, and again for each request. Else 404 no_transfer.
//	GET /balance?account= → 200 {"account", "currency", "balance"}. Without
//	    account {"items": [...]}; 404 no_account.
//	POST /notices
//	    {"to", "text", "reference"} → 202 {"id": "no_000001", "status": "queued"}.
//	    Else 422 invalid_notice. There is no key, and no read: GET is 405.
//
// Identities in the log: transfer:REFERENCE, notice:REFERENCE, cancel:ID and reversal:ID; for a body that names none,
// METHOD and path.
//
// Settings: {"native_keys": bool (true), "key_window": "24h", "list_lag": "0s",
// "accounts": {NAME: opening minor units of EUR}}. Without native keys the header is
// ignored, as by a bank that knows none. Settings are not part of the log.
package bank
