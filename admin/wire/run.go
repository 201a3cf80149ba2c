package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// OpenRun asks for a managed run. Workflow and one of Item, Once, and Items of many are required.
type OpenRun struct {
	Workflow string `json:"workflow"`
	Item     string `json:"item,omitzero"`
	// Once declares that a re-run is new work.
	Once bool `json:"once,omitzero"`
	// Items is one (the default) or many. With many each request for a mutation names its item, as the
	// user of the proxy credentials or in Keep-Item.
	Items string `json:"items,omitzero"`
	// Attempt must be the item's current one; absent takes it.
	Attempt int    `json:"attempt,omitzero"`
	Title   string `json:"title,omitzero"`
	// Mutations is none, one or many (the default).
	Mutations string `json:"mutations,omitzero"`
	// OnFailure is abort (the default) or return.
	OnFailure string `json:"on_failure,omitzero"`
	// Takeover ends the item's running run instead of refusing this one.
	Takeover bool `json:"takeover,omitzero"`
	// IfDone says what happens if the item is done or skipped. With skip (the default) or fail it is refused, for the
	// caller to tell apart. With run a run is opened that reads only.
	IfDone string `json:"if_done,omitzero"`
	// TTL ends a run that sends no heartbeat for so long; absent takes the
	// configured one.
	TTL    Duration          `json:"ttl,omitzero"`
	Labels map[string]string `json:"labels,omitzero"`
	// BlockScope is what an unresolved mutation of the run stops: workflow, item or mutation. Absent
	// leaves it to rules and configuration.
	BlockScope string `json:"block_scope,omitzero"`
	// ResumeHint tells a person how to start the work again.
	ResumeHint string `json:"resume_hint,omitzero"`
	// Tolerate are refusals that are meant, each as CODE:HOST or CODE:HOST:PORT. They don't keep the run from being
	// done. At most 100.
	Tolerate []string `json:"tolerate,omitzero"`
	// RequireTraffic keeps the run from being done before one of its requests came to the proxy.
	RequireTraffic bool `json:"require_traffic,omitzero"`
	// Passthrough lets a run with mutations none use the hosts of proxy.passthrough. What it does there isn't seen.
	Passthrough bool `json:"passthrough,omitzero"`
	// Listener gives the run a proxy address of its own that takes no credentials. It is for clients
	// that can't be given any. Who reaches it acts for the run.
	Listener bool `json:"listener,omitzero"`
	// Reach are targets that the run's host lets it reach past the proxy, such as databases, each as HOST:PORT. The
	// proxy carries nothing there. One that is a connector's host is refused. At most 100.
	Reach []string `json:"reach,omitzero"`
}

// OpenedRun is the answer to [OpenRun]; the token is given here only.
type OpenedRun struct {
	ID string `json:"id"`
	// Token is the password of the proxy credentials; the user name is "run". At a
	// listener of the run's own none are needed.
	Token    string `json:"token"`
	ProxyURL string `json:"proxy_url"`
	// CAPEM is the certificate of the proxy's own CA.
	CAPEM string `json:"ca_pem"`
	// Env is the environment for the script: proxy and CA variables for every
	// common client, and KEEP_*.
	Env map[string]string `json:"env"`
	Run Run               `json:"run"`
	// ConnectorPorts are the TCP ports of all connectors' hosts, in order. A host without a port has 80 and 443.
	ConnectorPorts []uint16 `json:"connector_ports"`
}

// Heartbeat keeps a run from expiring.
type Heartbeat struct {
	// TTL counts from now; absent takes the configured one.
	TTL Duration `json:"ttl,omitzero"`
}

// FinishRun ends a run by its script's own word.
type FinishRun struct {
	// Outcome is done or failed.
	Outcome string `json:"outcome"`
	// KeepOpen leaves the item open although the outcome is done.
	KeepOpen bool `json:"keep_open,omitzero"`
}

// EndRun ends a run from outside.
type EndRun struct {
	Reason string `json:"reason"`
	Actor  string `json:"actor"`
}

// Run is one execution of the script.
type Run struct {
	ID       string `json:"id"`
	Version  int64  `json:"version"`
	Workflow string `json:"workflow"`
	Item     string `json:"item"`
	Attempt  int    `json:"attempt"`
	Once     bool   `json:"once,omitzero"`
	// ItemDone says that the item was done or skipped at the opening: the run reads only.
	ItemDone bool `json:"item_done,omitzero"`
	// Items is many for a run of many items, whose Item is empty and Attempt 0.
	Items      string            `json:"items,omitzero"`
	State      string            `json:"state"`
	Class      string            `json:"class,omitzero"`
	Reason     string            `json:"reason,omitzero"`
	Cause      string            `json:"cause,omitzero"`
	Mutations  string            `json:"mutations"`
	OnFailure  string            `json:"on_failure"`
	BlockScope string            `json:"block_scope,omitzero"`
	Title      string            `json:"title,omitzero"`
	Labels     map[string]string `json:"labels,omitzero"`
	OpenedAt   time.Time         `json:"opened_at"`
	EndedAt    time.Time         `json:"ended_at,omitzero"`
	ExpiresAt  time.Time         `json:"expires_at,omitzero"`
	ResumeHint string            `json:"resume_hint,omitzero"`
	// Retry says, once the run is over, whether the same run makes sense again without a person or a
	// repair. It is yes or no, and empty where only its host knows.
	Retry string `json:"retry,omitzero"`
	// RetryAfter is when it does, if that is known; listings leave it out.
	RetryAfter time.Time `json:"retry_after,omitzero"`
	// Refused are requests that it was refused and that didn't get through since, at most 100 of them. Until they do,
	// it can't finish as done.
	Refused []Refused `json:"refused,omitzero"`
	// Traffic says that a request of the run came to the proxy. With RequireTraffic it isn't done before that.
	Traffic        bool `json:"traffic,omitzero"`
	RequireTraffic bool `json:"require_traffic,omitzero"`
	// Observed counts its requests of no connector that were let through: they may happen again.
	Observed int `json:"observed,omitzero"`
}

// Refused is a request that a run was refused.
type Refused struct {
	// Code is the name of the problem, Detail its sentence.
	Code   string    `json:"code"`
	Detail string    `json:"detail,omitzero"`
	Class  string    `json:"class"`
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	Host   string    `json:"host"`
	// Path is without its query.
	Path string `json:"path,omitzero"`
	// Asks says that a person was asked.
	Asks bool `json:"asks,omitzero"`
	// Item is the request's, in a run of many items.
	Item string `json:"item,omitzero"`
}

// Environment is how a script without a run finds the proxy: it works where an
// unmanaged scope is configured.
type Environment struct {
	ProxyURL string            `json:"proxy_url"`
	CAPEM    string            `json:"ca_pem"`
	Env      map[string]string `json:"env"`
}

// Explain asks what would happen to a request. Nothing is sent.
type Explain struct {
	Method  string `json:"method"`
	URL     string `json:"url"`
	Headers Header `json:"headers,omitzero"`
	Body    Body   `json:"body,omitzero"`
	// Workflow, Item and Attempt are the scope under which to explain; they may
	// be absent.
	Workflow string `json:"workflow,omitzero"`
	Item     string `json:"item,omitzero"`
	Attempt  int    `json:"attempt,omitzero"`
	// Account is what the API would say if a connector asked it whose data is changed. Explaining asks
	// nobody. It may be absent.
	Account string `json:"account,omitzero"`
}

// Explanation is the answer to [Explain], as the rules give it.
type Explanation = jsontext.Value
