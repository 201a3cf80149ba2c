package admin

import (
	"net/http"
	"slices"
	"strings"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// route is one row of the API: what it is called by, who may, what goes in and
// out. The server and the OpenAPI document are both made from it.
type route struct {
	method string
	// path is a pattern of net/http; "{id}" is a parameter.
	path string
	// roles are those of which a token must have one. Under /v1 none of them means
	// nobody; elsewhere no token is asked for.
	roles []Role
	// id is the operation's id.
	id string
	// summary is one sentence.
	summary string
	query   []parameter
	// headers are the request fields that it reads.
	headers []parameter
	// request is a value of the body's type, nil without a body.
	request any
	shape   shape
	// response is a value of the answer's type, nil where media isn't JSON.
	response any
	// status of success; 0 is 200.
	status int
	// media is the answer's media type; "" is application/json.
	media string
	// problems are the names of refusals beyond those that every route shares.
	problems []string
	serve    func(*Server, http.ResponseWriter, *http.Request, route) error
}

// reading makes a route's serve from a handler without a body.
func reading(handle func(*Server, *http.Request) (any, error)) func(*Server, http.ResponseWriter, *http.Request, route) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request, rt route) error {
		v, err := handle(s, r)
		if err != nil {
			return err
		}
		return respond(w, rt.successStatus(), v)
	}
}

// taking makes a route's serve from a handler of a decoded body.
func taking[T any](handle func(*Server, *http.Request, *T) (any, error)) func(*Server, http.ResponseWriter, *http.Request, route) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request, rt route) error {
		content, err := readBody(w, r, rt.bodyShape(s.config))
		if err != nil {
			return err
		}
		q := new(T)
		if err := decode(content, q, rt.shape); err != nil {
			return err
		}
		v, err := handle(s, r, q)
		if err != nil {
			return err
		}
		return respond(w, rt.successStatus(), v)
	}
}

// writing makes a route's serve from a handler that writes its answer itself.
func writing(handle func(*Server, http.ResponseWriter, *http.Request) error) func(*Server, http.ResponseWriter, *http.Request, route) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request, _ route) error { return handle(s, w, r) }
}

// guarded reports whether a token is needed.
func (rt route) guarded() bool { return strings.HasPrefix(rt.path, "/v1/") }

// successStatus is 200 unless the route says otherwise.
func (rt route) successStatus() int {
	if rt.status == 0 {
		return http.StatusOK
	}
	return rt.status
}

// bodyShape fills in the limit: a body that holds an answer may be as long as
// the answer in base64, and some more.
func (rt route) bodyShape(c Config) shape {
	sh := rt.shape
	switch rt.request.(type) {
	case wire.Resolve, wire.Explain:
		sh.limit = c.MaxBody/3*4 + maxRequest
	default:
		sh.limit = maxRequest
	}
	return sh
}

// openLater are the keys of requests that later versions take.
var openLater = []string{"connectors", "max_in_flight"}

// openProblems are the refusals of opening a run.
var openProblems = []string{"item-done", "item-busy", "item-attention", "attempt", "blocked", "idempotency-key", "draining", "not-ready"}

// routes is the whole API.
func routes() []route {
	return slices.Concat(runRoutes(), itemRoutes(), recordRoutes(), operatorRoutes(), publicRoutes())
}

// runRoutes are a host's.
func runRoutes() []route {
	return []route{
		{
			method: http.MethodPost, path: "/v1/runs", roles: hosts, id: "openRun",
			summary: "Opens a run, and gives its proxy credentials and environment.",
			request: wire.OpenRun{}, shape: shape{later: openLater}, response: wire.OpenedRun{}, status: http.StatusCreated,
			headers:  []parameter{{"Idempotency-Key", "a repeated request with the same key gets the run that the first one opened"}},
			problems: openProblems, serve: taking(openRun),
		},
		{
			method: http.MethodGet, path: "/v1/runs", roles: everybody, id: "listRuns",
			summary: "Lists runs, newest first.",
			query:   slices.Concat(scopeParameters, runParameters, pageParameters), response: wire.List[wire.Run]{}, serve: reading(listRuns),
		},
		{
			method: http.MethodGet, path: "/v1/runs/{id}", roles: everybody, id: "showRun",
			summary:  "Shows a run.",
			response: wire.Run{}, problems: []string{"not-found"}, serve: reading(showRun),
		},
		{
			method: http.MethodPost, path: "/v1/runs/{id}/heartbeat", roles: hosts, id: "heartbeat",
			summary: "Keeps a run from expiring.",
			request: wire.Heartbeat{}, shape: shape{optional: true}, response: wire.Run{},
			problems: []string{"not-found", "run-ended"}, serve: taking(heartbeat),
		},
		{
			method: http.MethodPost, path: "/v1/runs/{id}/finish", roles: hosts, id: "finishRun",
			summary: "Ends a run with its script's outcome.",
			request: wire.FinishRun{}, response: wire.Run{},
			problems: []string{"not-found", "run-unfinished", "run-ended"}, serve: taking(finishRun),
		},
		{
			method: http.MethodPost, path: "/v1/runs/{id}/end", roles: hosts, id: "endRun",
			summary: "Aborts a run, with a reason.",
			request: wire.EndRun{}, response: wire.Run{},
			problems: []string{"not-found", "run-ended"}, serve: taking(endRun),
		},
		{
			method: http.MethodGet, path: "/v1/environment", roles: everybody, id: "showEnvironment",
			summary:  "Gives the proxy's address and variables without a run.",
			response: wire.Environment{}, serve: reading(showEnvironment),
		},
	}
}

// itemProblems are the refusals of a decision on an item.
var itemProblems = []string{"not-found", "version", "not-allowed", "item-busy", "item-unsettled"}

// itemRoutes read items and decide on them, which is a person's: a host that could begin
// an item anew would turn each of its own tries into new work.
func itemRoutes() []route {
	return []route{
		{
			method: http.MethodPost, path: "/v1/items/{id}/done", roles: operators, id: "closeItem",
			summary: "Closes an item: it takes no new effects.",
			request: wire.DecideItem{}, response: wire.Item{}, problems: itemProblems,
			serve: taking(decideItem(ledger.ItemClose, plainDecision)),
		},
		{
			method: http.MethodPost, path: "/v1/items/{id}/skip", roles: operators, id: "skipItem",
			summary: "Leaves out what is left of an item.",
			request: wire.SkipItem{}, response: wire.Item{}, problems: itemProblems,
			serve: taking(decideItem(ledger.ItemSkip, skipDecision)),
		},
		{
			method: http.MethodPost, path: "/v1/items/{id}/reopen", roles: operators, id: "reopenItem",
			summary: "Lets runs of an item in again. What was applied stays applied.",
			request: wire.DecideItem{}, response: wire.Item{}, problems: itemProblems,
			serve: taking(decideItem(ledger.ItemReopen, plainDecision)),
		},
		{
			method: http.MethodPost, path: "/v1/items/{id}/new-attempt", roles: operators, id: "newAttempt",
			summary: "Begins the next attempt of an item: all of its work is done once more.",
			request: wire.NewAttempt{}, response: wire.Item{}, problems: slices.Concat(itemProblems, []string{"attempt"}),
			serve: taking(decideItem(ledger.ItemNewAttempt, attemptDecision)),
		},
		{
			method: http.MethodGet, path: "/v1/items", roles: readers, id: "listItems",
			summary: "Lists items, newest first.",
			query:   slices.Concat(itemParameters, scopeParameters, pageParameters), response: wire.List[wire.Item]{}, serve: reading(listItems),
		},
		{
			method: http.MethodGet, path: "/v1/items/{id}", roles: readers, id: "showItem",
			summary:  "Shows an item with its runs and mutations.",
			response: wire.Item{}, problems: []string{"not-found"}, serve: reading(showItem),
		},
	}
}

// recordRoutes read the ledger.
func recordRoutes() []route {
	return []route{
		{
			method: http.MethodGet, path: "/v1/mutations", roles: everybody, id: "listMutations",
			summary: "Lists mutations, newest first, without bodies and events.",
			query:   slices.Concat(mutationParameters, scopeParameters, pageParameters), response: wire.List[wire.Mutation]{},
			serve: reading(listMutations),
		},
		{
			method: http.MethodGet, path: "/v1/mutations/{id}", roles: everybody, id: "showMutation",
			summary:  "Shows a mutation with its bodies, events, evidence and open actions.",
			response: wire.Mutation{}, problems: []string{"not-found"}, serve: reading(showMutation),
		},
		{
			method: http.MethodGet, path: "/v1/mutations/{id}/{part}/body", roles: readers, id: "sendBody",
			summary: "Gives the stored body of a mutation's request or result, byte for byte.",
			media:   "application/octet-stream", problems: []string{"not-found", "body-dropped"}, serve: writing(sendBody),
		},
		{
			method: http.MethodGet, path: "/v1/escalations", roles: readers, id: "listEscalations",
			summary: "Lists open questions to people, with what is needed to answer them.",
			query:   slices.Concat(scopeParameters, pageParameters), response: wire.List[wire.Escalation]{}, serve: reading(listEscalations),
		},
		{
			method: http.MethodGet, path: "/v1/obligations", roles: readers, id: "listObligations",
			summary: "Lists effects that are to be taken back, newest first.",
			query:   slices.Concat(obligationParameters, scopeParameters, pageParameters), response: wire.List[wire.Obligation]{},
			serve: reading(listObligations),
		},
		{
			method: http.MethodGet, path: "/v1/impact", roles: readers, id: "listImpact",
			summary: "Lists what a rule version, a time or a run touched, newest first. A page with a next may be empty.",
			query:   slices.Concat(impactParameters, scopeParameters, pageParameters), response: wire.List[wire.Touched]{},
			problems: []string{"not-found"}, serve: reading(listImpact),
		},
		{
			method: http.MethodGet, path: "/v1/status", roles: readers, id: "showStatus",
			summary:  "Counts what is unknown, escalated and stopped.",
			response: wire.Status{}, serve: reading(showStatus),
		},
		{
			method: http.MethodGet, path: "/v1/events", roles: readers, id: "sendEvents",
			summary: "Streams the ledger's events. Last-Event-ID resumes.",
			headers: []parameter{{"Last-Event-ID", "begins after the event with this number"}},
			query:   []parameter{{"after", "begins after the event with this number"}},
			media:   "text/event-stream", serve: writing(sendEvents),
		},
		{
			method: http.MethodGet, path: "/v1/requests", roles: readers, id: "followRequests",
			summary: "Streams the proxy's requests from now on: an empty line, then one JSON object a line.",
			query:   requestParameters, media: "application/jsonl", response: wire.Served{}, problems: []string{"not-ready"}, serve: writing(sendRequests),
		},
	}
}

// operatorRoutes decide, and look at the whole ledger.
func operatorRoutes() []route {
	return []route{
		{
			method: http.MethodPost, path: "/v1/mutations/{id}/resolve", roles: operators, id: "resolve",
			summary: "Records a person's decision on a mutation.",
			request: wire.Resolve{}, response: wire.Mutation{},
			problems: []string{"not-found", "version", "not-allowed", "not-yet"}, serve: taking(resolve),
		},
		{
			method: http.MethodPost, path: "/v1/obligations/{id}/run", roles: operators, id: "runObligation",
			summary: "Takes an effect back now. Newer ones of the same mutation are taken back first.",
			request: wire.DecideObligation{}, response: wire.Obligation{},
			problems: []string{"not-found", "version", "not-allowed"}, serve: taking(runObligation),
		},
		{
			method: http.MethodPost, path: "/v1/obligations/{id}/waive", roles: operators, id: "waiveObligation",
			summary: "Waives an obligation: the effect stays.",
			request: wire.DecideObligation{}, response: wire.Obligation{},
			problems: []string{"not-found", "version", "not-allowed"}, serve: taking(waiveObligation),
		},
		{
			method: http.MethodPost, path: "/v1/explain", roles: readers, id: "explain",
			summary: "Says how a request would be judged. Nothing is sent.",
			request: wire.Explain{}, response: wire.Explanation{}, serve: taking(explain),
		},
		{
			method: http.MethodPost, path: "/v1/ledger/confirm", roles: operators, id: "confirmGap",
			summary: "Confirms a gap: a person knows what was done in it. What the ledger lacks is sent from then on.",
			request: wire.ConfirmGap{}, shape: shape{whole: []string{"item"}}, response: wire.GapConfirmed{}, serve: taking(confirmGap),
		},
		{
			method: http.MethodPost, path: "/v1/reload", roles: operators, id: "reload",
			summary:  "Reads the connectors again, and puts all of them in force or none.",
			response: wire.Reloaded{}, problems: []string{"reload-failed", "not-yet"}, serve: reading(reload),
		},
		{
			method: http.MethodPost, path: "/v1/pause", roles: operators, id: "pause",
			summary: "Keeps mutations and questions about outcomes back, also after a restart. Stored answers and reads go on.",
			request: wire.SetMode{}, response: wire.Mode{}, problems: []string{"not-yet"}, serve: taking(setMode(wire.ModePaused)),
		},
		{
			method: http.MethodPost, path: "/v1/drain", roles: operators, id: "drain",
			summary: "Keeps every new request back until a restart. What is under way ends.",
			request: wire.SetMode{}, response: wire.Mode{}, problems: []string{"not-yet"}, serve: taking(setMode(wire.ModeDraining)),
		},
		{
			method: http.MethodPost, path: "/v1/resume", roles: operators, id: "resume",
			summary: "Ends a pause, or draining.",
			request: wire.SetMode{}, response: wire.Mode{}, problems: []string{"not-yet"}, serve: taking(setMode(wire.ModeServing)),
		},
		{
			method: http.MethodGet, path: "/v1/ledger/verify", roles: operators, id: "verifyLedger",
			summary: "Checks the whole ledger. Gives one JSON object a line, the last with the report.",
			media:   "application/jsonl", response: wire.Progress{}, problems: []string{"not-yet"}, serve: writing(verifyLedger),
		},
		{
			method: http.MethodGet, path: "/v1/audit", roles: operators, id: "exportAudit",
			summary: "Exports the history, or one run with its records. Gives one JSON object a line, the last with counts.",
			query:   auditParameters, media: "application/jsonl", response: wire.AuditLine{}, problems: []string{"not-found"}, serve: writing(sendAudit),
		},
		{
			method: http.MethodGet, path: "/v1/ledger/backup", roles: operators, id: "backupLedger",
			summary: "Gives a consistent copy of the ledger.",
			media:   "application/octet-stream", problems: []string{"not-yet"}, serve: writing(backupLedger),
		},
	}
}

// Ids of the routes that the health listener serves too.
const (
	healthzID = "healthz"
	readyzID  = "readyz"
)

// publicRoutes need no token.
func publicRoutes() []route {
	return []route{
		{
			method: http.MethodGet, path: "/healthz", id: healthzID, summary: "Answers while the process lives.",
			media: "text/plain", serve: writing(sendHealthz),
		},
		{
			method: http.MethodGet, path: "/readyz", id: readyzID, summary: "Answers 200 while mutations would be carried.",
			media: "text/plain", problems: []string{"ledger-unavailable", "not-ready"}, serve: writing(sendReadyz),
		},
		{
			method: http.MethodGet, path: "/metrics", id: "metrics", summary: "Gives metrics for Prometheus.",
			media: "text/plain", problems: []string{"not-found"}, serve: writing(sendMetrics),
		},
		{
			method: http.MethodGet, path: "/openapi.json", id: "openapi", summary: "Gives this document.",
			media: "application/json", serve: writing(sendOpenAPI),
		},
	}
}
