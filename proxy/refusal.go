package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"keep-proxy/dispatch"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// problem is the name of a refusal, as in urn:keep:problem:NAME.
type problem string

const (
	problemUnknownOutcome    problem = "unknown-outcome"
	problemBlocked           problem = "blocked"
	problemRunAborted        problem = "run-aborted"
	problemRunFailing        problem = "run-failing"
	problemMismatch          problem = "payload-mismatch"
	problemRepeated          problem = "repeated"
	problemDrift             problem = "drift"
	problemAmbiguousRecord   problem = "ambiguous-record"
	problemForgotten         problem = "forgotten"
	problemIdentity          problem = "identity"
	problemAccount           problem = "account-unknown"
	problemAmbiguous         problem = "ambiguous-request"
	problemMalformed         problem = "malformed-request"
	problemRequestTimeout    problem = "request-timeout"
	problemIncomplete        problem = "incomplete-request"
	problemItemDone          problem = "item-done"
	problemItemBusy          problem = "item-busy"
	problemItemAttention     problem = "item-attention"
	problemAttempt           problem = "attempt"
	problemOneMutation       problem = "one-mutation"
	problemReadOnlyRun       problem = "read-only-run"
	problemSkipped           problem = "skipped"
	problemUnmatched         problem = "unmatched"
	problemDenied            problem = "denied"
	problemEgress            problem = "egress"
	problemMethodOverride    problem = "method-override"
	problemMisdirected       problem = "misdirected"
	problemTooLarge          problem = "too-large"
	problemNotSent           problem = "not-sent"
	problemNoResult          problem = "no-result"
	problemVerifyFailed      problem = "verify-failed"
	problemStale             problem = "stale"
	problemLedgerUnavailable problem = "ledger-unavailable"
	problemDraining          problem = "draining"
	problemOverloaded        problem = "overloaded"
	problemNotAProxyRequest  problem = "not-a-proxy-request"
	problemInternal          problem = "internal"
)

// kind is what is always the same about a refusal.
type kind struct {
	status int
	title  string
	class  verdict.Class
	// proxyError is the error type of RFC 9209 §2.3.
	proxyError string
	// retryable leaves it to the client whether to try again; anything else
	// tells client libraries not to.
	retryable bool
}

// incomplete and denied are error types of RFC 9209 (§2.3.5, §2.3.27).
const (
	incomplete = "http_response_incomplete"
	denied     = "http_request_denied"
)

// kinds is the one place that maps refusals to statuses.
var kinds = map[problem]kind{
	problemUnknownOutcome:    {http.StatusFailedDependency, "The outcome of this request is unknown", verdict.Indeterminate, incomplete, false},
	problemBlocked:           {http.StatusLocked, "Stopped by an unresolved mutation", verdict.Transient, denied, false},
	problemRunAborted:        {http.StatusFailedDependency, "The run is over", verdict.Transient, denied, false},
	problemRunFailing:        {http.StatusServiceUnavailable, "The run waits for the retry of what failed", verdict.Transient, denied, true},
	problemMismatch:          {http.StatusUnprocessableEntity, "Another payload for what was applied", verdict.Logic, denied, false},
	problemRepeated:          {http.StatusUnprocessableEntity, "A second intent without a subkey", verdict.Logic, denied, false},
	problemDrift:             {http.StatusUnprocessableEntity, "The run asks for something else than an earlier one did", verdict.Logic, denied, false},
	problemAmbiguousRecord:   {http.StatusForbidden, "Which stored mutation is meant can't be told", verdict.Logic, denied, false},
	problemForgotten:         {http.StatusForbidden, "It was done so long ago that its answer is forgotten", verdict.Logic, denied, false},
	problemIdentity:          {http.StatusUnprocessableEntity, "The mutation's identity can't be derived", verdict.Logic, denied, false},
	problemAccount:           {http.StatusBadGateway, "Whose data it changes can't be told", verdict.Transient, "destination_unavailable", true},
	problemAmbiguous:         {http.StatusUnprocessableEntity, "Parsers could disagree about this request", verdict.Logic, denied, false},
	problemIncomplete:        {http.StatusBadRequest, "The request ended early", verdict.Transient, "http_request_error", true},
	problemMalformed:         {http.StatusBadRequest, "The request is malformed", verdict.Logic, "http_request_error", false},
	problemRequestTimeout:    {http.StatusRequestTimeout, "The request did not arrive in time", verdict.Transient, "http_request_error", true},
	problemItemDone:          {http.StatusForbidden, "The item is done", verdict.Logic, denied, false},
	problemItemBusy:          {http.StatusConflict, "The item is busy", verdict.Transient, denied, true},
	problemItemAttention:     {http.StatusConflict, "The item needs attention", verdict.Logic, denied, false},
	problemAttempt:           {http.StatusConflict, "Not the item's current attempt", verdict.Logic, denied, false},
	problemOneMutation:       {http.StatusForbidden, "The run has made its one mutation", verdict.Logic, denied, false},
	problemReadOnlyRun:       {http.StatusForbidden, "The run may only read", verdict.Logic, denied, false},
	problemSkipped:           {http.StatusForbidden, "The mutation was skipped", verdict.Logic, denied, false},
	problemUnmatched:         {http.StatusForbidden, "No rule declares this request", verdict.Logic, denied, false},
	problemDenied:            {http.StatusForbidden, "Denied", verdict.Logic, denied, false},
	problemEgress:            {http.StatusForbidden, "The destination is not allowed", verdict.Permission, "destination_ip_prohibited", false},
	problemMethodOverride:    {http.StatusForbidden, "Method overrides are refused", verdict.Logic, denied, false},
	problemMisdirected:       {http.StatusMisdirectedRequest, "The request names another host than its tunnel", verdict.Logic, "http_request_error", false},
	problemTooLarge:          {http.StatusRequestEntityTooLarge, "The body is over the limit", verdict.Logic, denied, false},
	problemNotSent:           {http.StatusBadGateway, "Nothing was sent", verdict.Transient, "destination_unavailable", true},
	problemNoResult:          {http.StatusFailedDependency, "It happened, but its result is not known", verdict.Precondition, incomplete, false},
	problemVerifyFailed:      {http.StatusFailedDependency, "The world no longer agrees with the stored result", verdict.Precondition, denied, false},
	problemStale:             {http.StatusServiceUnavailable, "The ledger changed meanwhile", verdict.Transient, "proxy_internal_error", true},
	problemLedgerUnavailable: {http.StatusServiceUnavailable, "The ledger can't record anything", verdict.Transient, "proxy_internal_error", true},
	problemDraining:          {http.StatusServiceUnavailable, "The proxy takes no new work now", verdict.Transient, "proxy_internal_error", true},
	problemOverloaded:        {http.StatusServiceUnavailable, "Too many connections", verdict.Transient, "proxy_internal_error", true},
	problemNotAProxyRequest:  {http.StatusBadRequest, "This is a proxy", verdict.Logic, "http_request_error", false},
	problemInternal:          {http.StatusInternalServerError, "An error inside the proxy", verdict.Transient, "proxy_internal_error", false},
}

// refusal is an answer that the proxy makes itself.
type refusal struct {
	problem problem
	// detail is a sentence that the script's author understands, with what to do.
	detail string
	// title overrides the kind's, where that says too much.
	title string
	// class overrides the kind's.
	class verdict.Class
	// status overrides the kind's, for refusals that rules give a status.
	status     int
	mutation   *ledger.Mutation
	run, item  string
	actions    []string
	retryAfter time.Duration
	// noted says that the history has its event.
	noted bool
}

func refuse(p problem, detail string) *refusal { return &refusal{problem: p, detail: detail} }

// because gives the refusal the class of what kept the upstream from being reached.
func (f *refusal) because(err error) *refusal {
	if failed, ok := errors.AsType[*upstream.Error](err); ok {
		f.class = failed.Class.Unreached()
	}
	return f
}

// problemBody is the problem details object (RFC 9457 §3).
type problemBody struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Message and Error say the detail in the places where clients look that know no problem details.
	Message string       `json:"message"`
	Error   problemError `json:"error"`

	Mutation *problemMutation `json:"mutation,omitempty"`
	Run      string           `json:"run,omitempty"`
	Item     string           `json:"item,omitempty"`
	Class    verdict.Class    `json:"class,omitempty"`
	Actions  []string         `json:"actions,omitempty"`
	Help     string           `json:"help,omitempty"`
	// Diff says how the payload differs from the stored one.
	Diff []ledger.Change `json:"diff,omitempty"`
}

// problemError is as Google's clients read errors.
type problemError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type problemMutation struct {
	ID        string       `json:"id"`
	Connector string       `json:"connector"`
	Operation string       `json:"operation"`
	Target    string       `json:"target,omitempty"`
	State     ledger.State `json:"state"`
	Committed bool         `json:"committed,omitempty"`
}

// kind is the kind of the problem, with what this refusal says instead.
func (f *refusal) kind() kind {
	k, known := kinds[f.problem]
	if !known {
		k = kinds[problemInternal]
	}
	k.status, k.class, k.title = cmp.Or(f.status, k.status), cmp.Or(f.class, k.class), cmp.Or(f.title, k.title)
	return k
}

// response writes the refusal as an answer to r, in the words that its content asks for. help is the page's address.
func (f *refusal) response(r *http.Request, content []byte, help string) *http.Response {
	k := f.kind()
	body := problemBody{
		Type: "urn:keep:problem:" + string(f.problem), Title: k.title, Status: k.status, Detail: f.detail,
		Message: f.detail, Error: problemError{k.status, f.detail}, Run: f.run, Item: f.item, Class: k.class, Actions: f.actions, Help: help,
	}
	header := http.Header{
		"Content-Type":  {"application/problem+json"},
		"Cache-Control": {"no-store"},
		"Proxy-Status":  {proxyStatus(k.proxyError, f.problem)},
	}
	if m := f.mutation; m != nil {
		body.Mutation = &problemMutation{ID: m.ID, Connector: m.Connector, Operation: m.Operation, Target: m.Target, State: m.State, Committed: m.Committed}
		if m.Diff != nil && f.problem == problemMismatch {
			body.Diff = m.Diff.Changes
		}
		header.Set(dispatch.FieldMutation, m.ID)
		header.Set(dispatch.FieldState, string(m.State))
	}
	if !k.retryable || k.class != verdict.Transient {
		header.Set("X-Should-Retry", "false")
		header.Set("Stripe-Should-Retry", "false")
	}
	if f.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int((f.retryAfter+time.Second-1)/time.Second)))
	}
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte(`{"type":"urn:keep:problem:internal","status":500}`)
		k.status = http.StatusInternalServerError
	}
	status, text := worded(r.Header, content, &body, text, header)
	return newResponse(r, status, header, append(text, '\n'))
}

// proxyStatus is the value of Proxy-Status (RFC 9209 §2): who refused, and why.
func proxyStatus(proxyError string, p problem) string {
	return `keep-proxy; error=` + proxyError + `; details="` + string(p) + `"`
}

// newStreamed is newResponse with a body of a known size.
func newStreamed(r *http.Request, status int, header http.Header, body io.ReadCloser, size int64) *http.Response {
	resp := newResponse(r, status, header, nil)
	if status == http.StatusNoContent || status == http.StatusNotModified {
		_ = body.Close() // it was not read
		return resp
	}
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	resp.Body, resp.ContentLength = body, size
	return resp
}

// memory is content in memory.
type memory struct{ bytes.Reader }

// Close implements io.Closer.
func (*memory) Close() error { return nil }

// newResponse makes an answer with a whole body. It sets Content-Length, except for
// a status that has no content (RFC 9110 §8.6).
func newResponse(r *http.Request, status int, header http.Header, body []byte) *http.Response {
	if status == http.StatusNoContent || status == http.StatusNotModified {
		body = nil
	} else {
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	content := new(memory)
	content.Reset(body)
	return &http.Response{
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          content,
		ContentLength: int64(len(body)),
		Request:       r,
	}
}

// unsent makes a refusal from elsewhere fit for a script's author. It makes whole sentences, which
// say that nothing was sent.
func unsent(detail string) string {
	detail = strings.TrimSuffix(detail, ".")
	if word, _, _ := strings.Cut(detail, " "); word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" {
		detail = strings.ToUpper(word[:1]) + detail[1:]
	}
	if strings.Contains(detail, "othing was sent") || strings.Contains(detail, "not sent") {
		return detail + "."
	}
	return detail + ". Nothing was sent."
}

// cutOff changes the words of a refusal for a request that was on its way already.
func (f *refusal) cutOff() *refusal {
	f.detail = strings.NewReplacer("nothing was sent", "the request was cut off", "Nothing was sent", "The request was cut off").Replace(f.detail)
	return f
}

// noResult refuses for want of an answer to what happened; words say why. Whether this
// request was what made it happen is known here alone.
func (s *reply) noResult(words string) *refusal {
	if s.decision != ledger.DecideDispatch {
		words += " Nothing was sent."
	}
	f := refuse(problemNoResult, words)
	if s.mutation.Result == nil {
		// Later ones are told by the ledger that a person can give it.
		f.advise(s.mutation)
	}
	return f
}

// unreadable refuses since an answer that is kept can't be read.
func (s *reply) unreadable(err error) *refusal {
	switch {
	case s.decision != ledger.DecideDispatch:
		return ledgerRefusal(err)
	case s.mutation.State == ledger.Applied:
		return s.noResult("It happened, but its answer can't be read now: " + err.Error() + ".")
	}
	return refuse(problemInternal, "It was answered, but the answer can't be read now: "+err.Error()+".")
}

// advice is what to do about a refused claim, if neither the ledger's words nor the open question
// say so.
var advice = map[problem]string{
	problemItemDone:      "If there is more to do for it, a person opens it again (keep-proxy items reopen) or begins it anew (items new-attempt).",
	problemItemAttention: "See keep-proxy resolve; where nothing is asked there, keep-proxy status and keep-proxy items show.",
	problemAttempt:       "Start the work again: it is then of that attempt.",
	problemReadOnlyRun:   "What is to change something is started as a run of its own, with mutations one or many.",
	problemSkipped:       "If it is to be made after all, a person begins the item anew: keep-proxy items new-attempt.",
	problemForgotten:     "If it is to be made once more, a person begins the item anew: keep-proxy items new-attempt.",
}

// advise adds what to do to a refused claim.
func (f *refusal) advise(m *ledger.Mutation) {
	if words := advice[f.problem]; words != "" {
		f.detail += " " + words
	}
	if m == nil || !m.Escalated() {
		return
	}
	resolve := "keep-proxy resolve " + m.ID
	if f.problem == problemNoResult {
		f.detail += " A person who knows it can give it: " + resolve + " --happened --result FILE."
	}
	f.actions = []string{resolve}
}

// Refusals are noted in the history one by one, up to a number for each run, refusal and place.
// After that each doubling of the count is noted, as of a script that is refused in a loop.
const (
	notedEach   = 64
	notedPlaces = 10_000
)

// noted counts refusals.
type noted struct {
	mu    sync.Mutex
	times map[string]int
}

// next counts one refusal and reports whether it is to be noted, and how many there
// were.
func (n *noted) next(place string) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.times == nil || len(n.times) >= notedPlaces {
		n.times = map[string]int{}
	}
	n.times[place]++
	times := n.times[place]
	return times, times <= notedEach || times&(times-1) == 0
}

// audit appends a refusal to the history, unless it has its event there already. The
// request is named by its method and host alone: what no rule has read may hold
// secrets anywhere else.
func (p *Proxy) audit(x *exchange, r *http.Request, f *refusal) {
	if f.noted {
		return
	}
	asked := r.Method + " " + r.URL.Scheme + "://" + r.URL.Host
	if x.operation != "" {
		asked += " (" + x.connector + "." + x.operation + ")"
	}
	times, note := p.noted.next(x.caller.run + "\x00" + x.caller.workflow + "\x00" + x.caller.item + "\x00" + string(f.problem) + "\x00" + asked)
	if !note {
		return
	}
	e := ledger.Event{
		Actor: ledger.ActorProxy, What: string(f.problem), Why: f.detail, Evidence: asked,
		Run: x.caller.run, Workflow: x.caller.workflow, Item: x.caller.item,
	}
	if times > notedEach {
		e.Evidence = fmt.Sprintf("%s, the %dth such refusal", asked, times)
	}
	if f.mutation != nil {
		e.Mutation = f.mutation.ID
	}
	p.ledger.Refuse(e)
}
