package admin

import (
	"net/http"
	"slices"
	"strings"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// route is one row of the API: its name, its roles, its input and its output. The server and the OpenAPI document are
// both made from it.
type route struct {
	method string
	// path is a pattern of net/http; "{id}" is a parameter.
	path string
	// A token must have one of roles. Without any, nobody may under /v1; elsewhere no token is asked for.
	roles []Role
	// id is the operation's id, summary one sentence.
	id, summary string
	query       []parameter
	// headers are the request fields that it reads.
	headers []parameter
	// request is a value of the body's type, nil without a body.
	request any
	// optional allows no body at all, and long one that holds an answer.
	optional, long bool
	// whole are members of the body that narrow what is asked for. Empty texts are refused
	// there: left out they have a meaning, which is all of it.
	whole []string
	// response is a value of the answer's type, nil where media isn't JSON.
	response any
	// status is that of success, media the answer's media type.
	status int
	media  string
	// problems are the names of refusals beyond those that every route shares.
	problems []string
	serve    func(*Server, http.ResponseWriter, *http.Request, route) error
}

// get is a route that answers a GET with what handle returns, as JSON.
func get[T any](path string, roles []Role, id, summary string, handle func(*Server, *http.Request) (*T, error)) route {
	return route{
		method: http.MethodGet, path: path, roles: roles, id: id, summary: summary,
		response: *new(T), status: http.StatusOK, media: "application/json",
		serve: func(s *Server, w http.ResponseWriter, r *http.Request, rt route) error {
			v, err := handle(s, r)
			if err != nil {
				return err
			}
			return respond(w, rt.status, v)
		},
	}
}

// post is a route that answers a POST whose body is a Q.
func post[Q, T any](path string, roles []Role, id, summary string, handle func(*Server, *http.Request, *Q) (*T, error)) route {
	rt := get[T](path, roles, id, summary, nil)
	rt.method, rt.request = http.MethodPost, *new(Q)
	rt.serve = func(s *Server, w http.ResponseWriter, r *http.Request, rt route) error {
		q := new(Q)
		if err := rt.read(w, r, s.config.MaxBody, q); err != nil {
			return err
		}
		v, err := handle(s, r, q)
		if err != nil {
			return err
		}
		return respond(w, rt.status, v)
	}
	return rt
}

// send is a route that answers a GET with what serve writes itself.
func send(path string, roles []Role, id, summary, media string, serve func(*Server, http.ResponseWriter, *http.Request) error) route {
	return route{
		method: http.MethodGet, path: path, roles: roles, id: id, summary: summary, status: http.StatusOK, media: media,
		serve: func(s *Server, w http.ResponseWriter, r *http.Request, rt route) error {
			w.Header().Set("Content-Type", rt.media)
			return serve(s, w, r)
		},
	}
}

// lines is a route that sends JSON objects like this one, one a line.
func lines(like any, path string, roles []Role, id, summary string, serve func(*Server, http.ResponseWriter, *http.Request) error) route {
	rt := send(path, roles, id, summary, "application/jsonl", serve)
	rt.response = like
	return rt
}

// takes adds parameters of the query.
func (rt route) takes(lists ...[]parameter) route {
	rt.query = slices.Concat(lists...)
	return rt
}

// refuses adds names of refusals.
func (rt route) refuses(names ...string) route {
	rt.problems = slices.Concat(rt.problems, names)
	return rt
}

// guarded reports whether a token is needed.
func (rt route) guarded() bool { return strings.HasPrefix(rt.path, "/v1/") }

// routes is the whole API.
func routes() []route {
	return slices.Concat(runRoutes(), itemRoutes(), recordRoutes(), operatorRoutes(), publicRoutes())
}

// runRoutes are a host's.
func runRoutes() []route {
	open := post("/v1/runs", hosts, "openRun", "Opens a run, and gives its proxy credentials and environment.", openRun).
		refuses("item-done", "item-busy", "item-attention", "attempt", "blocked", "idempotency-key", "draining", "not-ready")
	open.status = http.StatusCreated
	open.headers = []parameter{{"Idempotency-Key", "a repeated request with the same key gets the run that the first one opened"}}
	beat := post("/v1/runs/{id}/heartbeat", hosts, "heartbeat", "Keeps a run from expiring.", heartbeat).refuses("not-found", "run-ended")
	beat.optional = true
	return []route{
		open, beat,
		get("/v1/runs", everybody, "listRuns", "Lists runs, newest first.", listRuns).takes(scopeParameters, runParameters, pageParameters),
		get("/v1/runs/{id}", everybody, "showRun", "Shows a run.", showRun).refuses("not-found"),
		post("/v1/runs/{id}/finish", hosts, "finishRun", "Ends a run with its script's outcome.", finishRun).
			refuses("not-found", "run-unfinished", "run-ended"),
		post("/v1/runs/{id}/end", hosts, "endRun", "Aborts a run, with a reason.", endRun).refuses("not-found", "run-ended"),
		get("/v1/environment", everybody, "showEnvironment", "Gives the proxy's address and variables without a run.", showEnvironment),
	}
}

// itemRoutes read items and decide on them. Only a person decides: a host that could begin an item
// anew would make new work of each try.
func itemRoutes() []route {
	refused := []string{"not-found", "version", "not-allowed", "item-busy", "item-unresolved"}
	return []route{
		post("/v1/items/{id}/done", operators, "closeItem", "Closes an item: it takes no new effects.",
			decideItem[wire.DecideItem](ledger.ItemClose)).refuses(refused...),
		post("/v1/items/{id}/skip", operators, "skipItem", "Leaves out what is left of an item.",
			decideItem[wire.SkipItem](ledger.ItemSkip)).refuses(refused...),
		post("/v1/items/{id}/reopen", operators, "reopenItem", "Lets runs of an item in again. What was applied stays applied.",
			decideItem[wire.DecideItem](ledger.ItemReopen)).refuses(refused...),
		post("/v1/items/{id}/new-attempt", operators, "newAttempt", "Begins the next attempt of an item: all of its work is done once more.",
			decideItem[wire.NewAttempt](ledger.ItemNewAttempt)).refuses(refused...).refuses("attempt"),
		get("/v1/items", readers, "listItems", "Lists items, newest first.", listItems).takes(itemParameters, scopeParameters, pageParameters),
		get("/v1/items/{id}", readers, "showItem", "Shows an item with its runs and mutations.", showItem).refuses("not-found"),
	}
}

// recordRoutes read the ledger.
func recordRoutes() []route {
	events := send("/v1/events", readers, "sendEvents", "Streams the ledger's events. Last-Event-ID resumes.", "text/event-stream", sendEvents)
	events.headers = []parameter{{"Last-Event-ID", "begins after the event with this number"}}
	events.query = []parameter{{"after", "begins after the event with this number"}}
	return []route{
		get("/v1/mutations", everybody, "listMutations", "Lists mutations, newest first, without bodies and events.", listMutations).
			takes(mutationParameters, scopeParameters, pageParameters),
		get("/v1/mutations/{id}", everybody, "showMutation", "Shows a mutation with its bodies, events, evidence and open actions.", showMutation).
			refuses("not-found"),
		send("/v1/mutations/{id}/{part}/body", readers, "sendBody", "Gives the stored body of a mutation's request or result, byte for byte.",
			"application/octet-stream", sendBody).refuses("not-found", "body-dropped"),
		get("/v1/escalations", readers, "listEscalations", "Lists open questions to people, with what is needed to answer them.", listEscalations).
			takes(scopeParameters, pageParameters),
		get("/v1/obligations", readers, "listObligations", "Lists effects that are to be taken back, newest first.", listObligations).
			takes(obligationParameters, scopeParameters, pageParameters),
		get("/v1/impact", readers, "listImpact", "Lists what a rule version, a time or a run touched, newest first. A page with a next may be empty.",
			listImpact).takes(impactParameters, scopeParameters, pageParameters).refuses("not-found"),
		get("/v1/status", readers, "showStatus", "Counts what is unknown, escalated and stopped.", showStatus),
		events,
		lines(wire.Served{}, "/v1/requests", readers, "followRequests",
			"Streams the proxy's requests from now on: an empty line, then one JSON object a line.", sendRequests).
			takes(requestParameters()),
	}
}

// operatorRoutes decide, and look at the whole ledger.
func operatorRoutes() []route {
	decide := post("/v1/mutations/{id}/resolve", operators, "resolve", "Records a person's decision on a mutation.", resolve).
		refuses("not-found", "version", "not-allowed")
	judge := post("/v1/explain", readers, "explain", "Says how a request would be judged. Nothing is sent.", explain)
	decide.long, judge.long = true, true
	confirm := post("/v1/ledger/confirm", operators, "confirmGap",
		"Confirms a gap: a person knows what was done in it. What the ledger lacks is sent from then on.", confirmGap)
	confirm.whole = []string{"item"}
	again := get("/v1/reload", operators, "reload", "Reads the connectors again, and puts all of them in force or none.", reload).
		refuses("reload-failed")
	again.method = http.MethodPost
	return []route{
		decide, judge, confirm, again,
		post("/v1/obligations/{id}/run", operators, "runObligation",
			"Takes an effect back now. Newer ones of the same mutation are taken back first.", runObligation).
			refuses("not-found", "version", "not-allowed"),
		post("/v1/obligations/{id}/waive", operators, "waiveObligation", "Waives an obligation: the effect stays.", waiveObligation).
			refuses("not-found", "version", "not-allowed"),
		post("/v1/pause", operators, "pause",
			"Keeps mutations and questions about outcomes back, also after a restart. Stored answers and reads go on.",
			setMode(wire.ModePaused)),
		post("/v1/drain", operators, "drain", "Keeps every new request back until a restart. What is under way ends.",
			setMode(wire.ModeDraining)),
		post("/v1/resume", operators, "resume", "Ends a pause, or draining.", setMode(wire.ModeServing)),
		lines(wire.Progress{}, "/v1/ledger/verify", operators, "verifyLedger",
			"Checks the whole ledger. Gives one JSON object a line, the last with the report.", verifyLedger),
		lines(wire.AuditLine{}, "/v1/audit", operators, "exportAudit",
			"Exports the history, or one run with its records. Gives one JSON object a line, the last with counts.", sendAudit).
			takes(auditParameters).refuses("not-found"),
		send("/v1/ledger/backup", operators, "backupLedger", "Gives a consistent copy of the ledger.", "application/octet-stream", backupLedger),
	}
}

// healthRoutes are those that the listener for probes serves too.
func healthRoutes() []route {
	return []route{
		send("/healthz", nil, "healthz", "Answers while the process lives.", "text/plain", sendHealthz),
		send("/readyz", nil, "readyz", "Answers 200 while mutations would be carried.", "text/plain", sendReadyz).
			refuses("ledger-unavailable", "not-ready"),
	}
}

// publicRoutes need no token.
func publicRoutes() []route {
	return append(healthRoutes(),
		send("/metrics", nil, "metrics", "Gives metrics for Prometheus.", "text/plain", sendMetrics),
		send("/openapi.json", nil, "openapi", "Gives this document.", "application/json", sendOpenAPI))
}
