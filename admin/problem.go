package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// problemType is one kind of refusal.
type problemType struct {
	status int
	title  string
}

// problemTypes is every kind of refusal that the API gives, by name.
var problemTypes = map[string]problemType{
	"bad-request":        {http.StatusBadRequest, "Bad request"},
	"token":              {http.StatusUnauthorized, "A token is needed"},
	"role":               {http.StatusForbidden, "The token's role doesn't allow this"},
	"browser":            {http.StatusForbidden, "Requests of web pages are refused"},
	"not-found":          {http.StatusNotFound, "Not found"},
	"method":             {http.StatusMethodNotAllowed, "Method not allowed"},
	"version":            {http.StatusConflict, "The record has changed"},
	"not-allowed":        {http.StatusConflict, "Not allowed in this state"},
	"item-done":          {http.StatusConflict, "The item is done"},
	"item-busy":          {http.StatusConflict, "The item is busy"},
	"item-attention":     {http.StatusConflict, "The item needs attention"},
	"item-unresolved":    {http.StatusConflict, "A mutation of the item is unresolved"},
	"attempt":            {http.StatusConflict, "Not the current attempt"},
	"run-unfinished":     {http.StatusConflict, "The run is unfinished"},
	"run-ended":          {http.StatusConflict, "The run is over"},
	"body-dropped":       {http.StatusGone, "The content was dropped"},
	"too-large":          {http.StatusRequestEntityTooLarge, "The body is too large"},
	"media-type":         {http.StatusUnsupportedMediaType, "Not JSON"},
	"misdirected":        {http.StatusMisdirectedRequest, "Not an address of this server"},
	"idempotency-key":    {http.StatusUnprocessableEntity, "The Idempotency-Key was used before"},
	"blocked":            {http.StatusLocked, "Stopped by an unresolved mutation"},
	"internal":           {http.StatusInternalServerError, "Internal error"},
	"ledger-damaged":     {http.StatusInternalServerError, "The ledger is damaged"},
	"reload-failed":      {http.StatusUnprocessableEntity, "The connectors can't be put in force"},
	"ledger-unavailable": {http.StatusServiceUnavailable, "The ledger takes no records"},
	"draining":           {http.StatusServiceUnavailable, "keep-proxy takes no new work now"},
	"not-ready":          {http.StatusServiceUnavailable, "Not ready"},
}

// refuse makes a problem of a known name; an unknown name is an internal one.
func refuse(name, detail string, args ...any) *wire.Problem {
	t, ok := problemTypes[name]
	if !ok {
		name, t = "internal", problemTypes["internal"]
	}
	return &wire.Problem{
		Type:   wire.ProblemPrefix + name,
		Title:  t.title,
		Status: t.status,
		Detail: fmt.Sprintf(detail, args...),
	}
}

// BadRequest is a 400 with one fault. It names where: a JSON Pointer into the body, "query:NAME" or "header:NAME".
// The advice how may be empty.
func BadRequest(where, what, how string) error {
	return badRequest([]wire.Fault{{Where: where, What: what, How: how}})
}

// badRequest is a 400 with all faults; the first is the detail too.
func badRequest(faults []wire.Fault) *wire.Problem {
	f := faults[0]
	detail := f.Where + ": " + f.What
	if f.How != "" {
		detail += "; " + f.How
	}
	if more := len(faults) - 1; more > 0 {
		detail += fmt.Sprintf(" (and %d more, see errors)", more)
	}
	p := refuse("bad-request", "%s", detail)
	p.Errors = faults
	return p
}

// refusals maps the ledger's errors to problems, the most special ones first.
// Where cause is set, the ledger's own words are shown too: they name records,
// never files.
var refusals = []struct {
	err          error
	name, detail string
	cause        bool
}{
	{ledger.ErrNotFound, "not-found", "There is no such record in this ledger.", false},
	{ledger.ErrInvalid, "bad-request", "The request can't be carried out.", true},
	{ledger.ErrVersion, "version", "The record has changed since the version given; read it again and decide on what it says now.", false},
	{ledger.ErrItemDone, "item-done", "The item is done or skipped, so no run of it is opened.", true},
	{ledger.ErrItemBusy, "item-busy", "A run of this item and attempt is running; wait until it ends, or end it: a new run does so with takeover.", true},
	{ledger.ErrItemAttention, "item-attention", "The item waits for a person's decision; see GET /v1/escalations, or GET /v1/status after a loss. " +
		"Where neither asks, decide on the item itself: keep-proxy items reopen, skip or new-attempt.", true},
	{ledger.ErrAttempt, "attempt", "The attempt isn't the item's current one; leave attempt out to take that.", true},
	{ledger.ErrItemUnresolved, "item-unresolved", "The item isn't changed while a mutation of it is unresolved; see keep-proxy status.", true},
	{ledger.ErrItemState, "not-allowed", "The item's state doesn't allow this; see its actions in GET /v1/items/ID.", true},
	{ledger.ErrRunUnfinished, "run-unfinished", "The run can't finish as done; see GET /v1/mutations with the run.", true},
	{ledger.ErrRunEnded, "run-ended", "The run is over; open a new one.", true},
	{ledger.ErrBodyDropped, "body-dropped", "Retention dropped this content; its digest is kept with the record.", false},
	{ledger.ErrDamaged, "ledger-damaged", "What the ledger holds here doesn't match its checksum; run keep-proxy ledger verify.", false},
	{ledger.ErrFormat, "ledger-unavailable", "The ledger holds what this program doesn't know, and takes nothing more from it: use the version that ran " +
		"on it last, or a newer one.", false},
	{ledger.ErrLowSpace, "ledger-unavailable", "The disk of the ledger is nearly full; nothing was changed. Make space and try again.", false},
	{ledger.ErrUnavailable, "ledger-unavailable", "The ledger can't commit; whether this was kept will be known after a restart only.", false},
	{ledger.ErrNotAllowed, "not-allowed", "The record's state doesn't allow this.", false},
}

// problemOf says how err is answered. What is not known is `internal`, and its
// text is not shown.
func problemOf(err error) *wire.Problem {
	if p, ok := errors.AsType[*wire.Problem](err); ok {
		return p
	}
	if invalid, ok := errors.AsType[*ledger.InvalidError](err); ok {
		return badRequest(each(invalid.Faults, faultOf))
	}
	if blocked, ok := errors.AsType[*ledger.BlockedError](err); ok {
		return blockedProblem(blocked)
	}
	if notAllowed, ok := errors.AsType[*ledger.NotAllowedError](err); ok {
		return notAllowedProblem(notAllowed)
	}
	if refused, ok := errors.AsType[*ledger.RefusedError](err); ok {
		p := refuse("run-unfinished", "The run can't finish as done: %s. Ask for it again, or finish the run as failed.", refused.Why)
		p.Refused = as[[]wire.Refused](refused.Refused)
		return p
	}
	for _, r := range refusals {
		if !errors.Is(err, r.err) {
			continue
		}
		p := refuse(r.name, "%s", r.detail)
		if r.cause {
			cause := strings.TrimPrefix(err.Error(), r.err.Error()+": ")
			p.Detail = strings.TrimSuffix(p.Detail, ".") + " (" + cause + ")."
		}
		return p
	}
	return refuse("internal", "Something went wrong that the caller can't put right; the program's log has the cause.")
}

// blockedProblem names the first mutation that stops the scope.
func blockedProblem(e *ledger.BlockedError) *wire.Problem {
	if len(e.Blockers) == 0 {
		return refuse("blocked", "An unresolved mutation stops this; see keep-proxy status.")
	}
	b := e.Blockers[0]
	how := "the API is asked what became of it, and a person can say it"
	if b.State == ledger.Indeterminate {
		how = "a person must say what became of it"
	}
	p := refuse("blocked", "Mutation %s of item %q is unresolved (%s) and stops the %s; %s: keep-proxy resolve %s.",
		b.ID, b.Item, b.State, scopeOf(b.Scope), how, b.ID)
	p.Mutation = &wire.MutationRef{ID: b.ID, State: string(b.State)}
	p.Run, p.Item, p.Class = b.Run, b.Item, string(verdict.Indeterminate)
	return p
}

// notAllowedProblem names the actions that are open.
func notAllowedProblem(e *ledger.NotAllowedError) *wire.Problem {
	p := refuse("not-allowed", "%s isn't possible while the mutation is %s: %s.", e.On, e.State, e.Reason)
	for _, open := range e.Open {
		p.Actions = append(p.Actions, wire.Action{Action: string(open)})
	}
	return p
}

// scopeOf reads the zero value as the widest scope.
func scopeOf(s ledger.BlockScope) ledger.BlockScope {
	if s == "" {
		return ledger.BlockWorkflow
	}
	return s
}
