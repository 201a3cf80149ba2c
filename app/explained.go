package app

import (
	"mime"
	"regexp"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// Scope is under which an explained request would be made. The zero value names
// placeholders.
type Scope struct {
	Workflow string
	Item     string
	Attempt  int
	// Account is what the API would say, where it is asked; empty where nobody knows.
	Account string
	// At is when it would be claimed.
	At time.Time
}

// ScopeOf is the scope that a person asks about at a time.
func ScopeOf(e wire.Explain, at time.Time) Scope {
	return Scope{Workflow: e.Workflow, Item: e.Item, Attempt: e.Attempt, Account: e.Account, At: at}
}

// Explained says how the rules read a request, and what key it has.
type Explained struct {
	// Effect is read, mutation, ignore or deny; "unmatched" for a host of no
	// connector.
	Effect    string `json:"effect"`
	Connector string `json:"connector,omitempty"`
	Operation string `json:"operation,omitempty"`
	// Others are the operations that were looked at, with the reason for and
	// against each.
	Others []rules.Candidate `json:"candidates,omitempty"`
	// Refused is why the request would not be sent, as problem and sentence.
	Refused string `json:"refused,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Target  string `json:"target,omitempty"`
	Account string `json:"account,omitempty"`
	// AccountAsked is the request by which the API would be asked for the account. Nothing is
	// asked to explain, so without a given account there is no key.
	AccountAsked string            `json:"account_asked,omitempty"`
	Scope        ledger.Scope      `json:"scope,omitzero"`
	Ident        map[string]string `json:"identity,omitempty"`
	Subkey       string            `json:"subkey,omitempty"`

	PayloadDigest     string `json:"payload_digest,omitempty"`
	SignificantDigest string `json:"significant_digest,omitempty"`
	Key               string `json:"key,omitempty"`
	ID                string `json:"id,omitempty"`
	Marker            string `json:"marker,omitempty"`
	// VendorKey is that of generation 1, or the script's own where the rule keeps it.
	VendorKey string `json:"vendor_key,omitempty"`
	// Upgrade are the protocols to which the connection may change; what is said in them
	// is judged by nobody. For a request that asks for a change, those that the upstream
	// would be asked for.
	Upgrade []string `json:"upgrade,omitempty"`
	// Kept names the parts of the request that the ledger would keep in clear, and Masked those that it would mask, at
	// least in part.
	Kept   []string `json:"kept,omitempty"`
	Masked []string `json:"masked,omitempty"`
	// Asked is the first request of each probe, or why it can't begin.
	Asked []string `json:"asked,omitempty"`
	// Now says what would happen; empty without a ledger.
	Now string `json:"now,omitempty"`
}

// ExplainRequest says how set reads a request. It sends nothing and needs no ledger.
func ExplainRequest(set *rules.Set, raw rules.Raw, s Scope) Explained {
	asked, refusal := raw.Upgrade()
	if refusal != nil {
		return refusedExplained(Explained{Effect: "deny"}, refusal)
	}
	request, refusal := set.Normalise(raw)
	if refusal != nil {
		return refusedExplained(Explained{Effect: "deny"}, refusal)
	}
	request = request.WithBody(raw.Body)
	x := set.Explain(request)
	out := Explained{Effect: x.Match.Effect.String(), Others: x.Candidates}
	if x.Match.Connector != nil {
		out.Connector = x.Match.Connector.Name
	}
	if x.Match.Operation != nil {
		out.Operation = x.Match.Operation.Name
	}
	if x.Match.Operation != nil {
		out.Upgrade = x.Match.Operation.Upgrade
	}
	if len(asked) > 0 {
		if out.Upgrade, refusal = x.Match.Upgrade(asked); refusal != nil && rules.IsHandshake(raw.Header) {
			return refusedExplained(out, refusal)
		}
	}
	switch {
	case x.Match.Refusal != nil:
		return refusedExplained(out, x.Match.Refusal)
	case x.Match.Unmatched:
		out.Effect = "unmatched"
		return out
	case x.Match.Effect != rules.EffectMutation || x.Match.Operation == nil:
		return out
	}
	return explainMutation(out, request, raw.Body, x.Match, s)
}

func refusedExplained(x Explained, f *rules.Refusal) Explained {
	x.Effect, x.Refused, x.Detail = "deny", string(f.Problem), f.Detail
	return x
}

func explainMutation(out Explained, request *rules.Request, content []byte, m rules.Match, s Scope) Explained {
	account := s.Account
	if read := m.Connector.AccountRead; read != nil {
		ask, err := read.Ask(request)
		if err != nil {
			return refusedExplained(out, &rules.Refusal{Problem: rules.ProblemAccount, Detail: err.Error()})
		}
		out.AccountAsked = ask.Method + " " + ask.Target
		if account == "" {
			account = "ACCOUNT"
		}
		request = request.WithAccount(m.Connector, account)
	}
	derived, refusal := m.Operation.Derive(request, m)
	if refusal != nil {
		return refusedExplained(out, takenFor(request, content, refusal))
	}
	if s.Workflow == "" {
		s.Workflow = "WORKFLOW"
	}
	if s.Item == "" {
		s.Item = "ITEM"
	}
	s.Attempt = max(s.Attempt, 1)
	out.Scope = ledger.Scope{Workflow: s.Workflow, Item: s.Item, Attempt: s.Attempt}
	out.Target, out.Account, out.Subkey = derived.Target, derived.Account, derived.Subkey
	out.PayloadDigest, out.SignificantDigest = derived.PayloadDigest, derived.SignificantDigest
	out.Ident = make(map[string]string, len(derived.Identity))
	for name, value := range derived.Identity {
		out.Ident[name] = string(value)
	}
	out.keeps(request, m.Operation.Redact(request))
	if out.AccountAsked != "" && s.Account == "" {
		out.Account = ""
		return outgoingExplained(out, request, m.Operation, rules.Mutation{
			ID: rules.CaseID, Marker: rules.CaseMarker, VendorKey: rules.CaseVendorKey, ClaimedAt: s.At,
		})
	}
	key, err := ledger.MutationKey(ledger.KeyParts{
		Workflow: s.Workflow, Item: s.Item, Attempt: s.Attempt, Connector: m.Connector.Name, Operation: m.Operation.Name,
		Account: derived.Account, HostGroup: derived.HostGroup, HostVars: derived.HostVars, Identity: out.Ident, Subkey: derived.Subkey,
	})
	if err != nil {
		return refusedExplained(out, &rules.Refusal{Problem: rules.ProblemIdentity, Detail: err.Error()})
	}
	out.Key, out.ID, out.Marker = key.String(), key.ID(), ledger.Marker(key)
	if k := m.Operation.NativeKey; k != nil {
		// A format that rules accept can be made.
		out.VendorKey, _ = ledger.VendorKey(key, 1, k.Format, k.MaxLength)
		if own, sent := m.Operation.ClientKey(request); sent && k.WhenPresent == rules.PresentKeepFirst {
			out.VendorKey = own
		}
	}
	return outgoingExplained(out, request, m.Operation, rules.Mutation{ID: out.ID, Marker: out.Marker, VendorKey: out.VendorKey, ClaimedAt: s.At})
}

// outgoingExplained is x, or why the rule can't make the request that goes out of this one. A stored
// answer needs none, so that the key stays.
func outgoingExplained(x Explained, request *rules.Request, op *rules.Operation, known rules.Mutation) Explained {
	if op.Send != nil {
		return x // what goes out then are requests of the rule's own
	}
	known.Generation = 1
	if known.Unmarked = op.Unmarked(request); known.Unmarked {
		x.Marker = ""
	}
	if _, refusal := op.Outgoing(request, known); refusal != nil {
		return refusedExplained(x, refusal)
	}
	for _, s := range op.Strategies {
		if s.Probe != nil {
			x.Asked = append(x.Asked, s.Probe.First(rules.Env{Request: request, Account: x.Account, Mutation: known}))
		}
	}
	return x
}

// valueless is the refusal for a value that isn't there, of an expression that reads the content.
var valueless = regexp.MustCompile(`\((?:.*\W)?(json|form(?:_all)?)\b.*\) has no value in this request`)

// takenFor adds to a refusal what the content was taken for, where that is likely why a value isn't there. Whoever
// explains a request made it up, and may have declared it by accident.
func takenFor(request *rules.Request, content []byte, f *rules.Refusal) *rules.Refusal {
	reads := valueless.FindStringSubmatch(f.Detail)
	if reads == nil || request.Header.Get("Content-Encoding") != "" {
		return f
	}
	declared := request.Header.Get("Content-Type")
	media, _, _ := mime.ParseMediaType(declared)
	form := media == "application/x-www-form-urlencoded"
	declaration := "it has no Content-Type"
	if declared != "" {
		declaration = "its Content-Type is " + declared
	}
	var words string
	switch {
	case len(content) == 0:
		words = "the request has no content"
	case reads[1] != "json" && !form:
		words = "the content was not taken for a form, as " + declaration
	case reads[1] == "json" && !jsontext.Value(content).IsValid():
		words = "the content is no JSON; " + declaration
	default:
		return f
	}
	return &rules.Refusal{Problem: f.Problem, Detail: f.Detail + "; " + words}
}
