package admin

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/names"
	"keep-proxy/ledger"
)

// reservedLabel begins the labels that the API itself sets.
const reservedLabel = "keep."

// requestLabel holds the digest of the request that opened a run with an
// Idempotency-Key.
const requestLabel = reservedLabel + "request"

// openRun answers POST /v1/runs.
//
// With an Idempotency-Key, the run's token is derived from the key and the operator's token. So a
// repeated request, also after a restart, finds the run that it opened and gets the same token.
// Repeats work as long as the ledger knows the token (24 h after the run's end).
func openRun(s *Server, r *http.Request, q *wire.OpenRun) (*wire.OpenedRun, error) {
	command, err := s.openCommand(q)
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case err != nil:
		return nil, err
	case len(keys) == 0:
		token, err := newToken(s.config.Random)
		if err != nil {
			return nil, err
		}
		return s.open(r, command, q, token)
	case len(keys) > 1 || keys[0] == "" || len(keys[0]) > 255:
		return nil, BadRequest("header:Idempotency-Key", "not one key of 1 to 255 bytes", "give one, or none")
	}
	return s.openOnce(r, command, q, keys[0])
}

// openOnce opens the run unless the same request did before.
func (s *Server) openOnce(r *http.Request, command ledger.OpenRun, q *wire.OpenRun, key string) (*wire.OpenedRun, error) {
	token := s.derivedToken(callerOf(r.Context()).name, key)
	lock := &s.opening[int(token[0])%len(s.opening)]
	lock.Lock()
	defer lock.Unlock()
	// Equal requests have one digest, however they are written.
	content, err := marshal(q)
	if err != nil {
		return nil, err
	}
	digest := digestOf(string(content))
	var before *ledger.Run
	err = s.config.Ledger.View(r.Context(), func(v ledger.View) (err error) {
		before, err = v.RunByToken(digestOf(token))
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		if command.Labels == nil {
			command.Labels = map[string]string{}
		}
		command.Labels[requestLabel] = digest
		return s.open(r, command, q, token)
	case err != nil:
		return nil, err
	case before.Labels[requestLabel] != digest:
		return nil, refuse("idempotency-key", "This Idempotency-Key opened run %s with another request; use a new key for a new run.", before.ID)
	}
	a, err := s.access(r.Context(), q, token)
	if err != nil {
		return nil, err
	}
	return s.opened(before, token, a), nil
}

// derivedToken is 256 bits that only this server, or the holder of the
// operator's token, can find.
func (s *Server) derivedToken(caller, key string) string {
	mac := hmac.New(sha256.New, []byte(s.config.OperatorToken))
	// A hash takes everything.
	_, _ = fmt.Fprintf(mac, "keep run token\x00%d\x00%s\x00%s", len(caller), caller, key)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// open opens the run, unless an operator keeps work back; the ledger gets the token's digest only.
func (s *Server) open(r *http.Request, command ledger.OpenRun, q *wire.OpenRun, token string) (*wire.OpenedRun, error) {
	if err := s.admitting(); err != nil {
		return nil, err
	}
	a, err := s.access(r.Context(), q, token)
	if err != nil {
		return nil, err
	}
	command.TokenSHA256 = digestOf(token)
	run, err := s.config.Ledger.OpenRun(r.Context(), command)
	if err != nil {
		s.config.Environment.CloseListener(command.TokenSHA256)
		return nil, err
	}
	if len(q.Reach) > 0 {
		s.config.Log.Info().Str("run", run.ID).Strs("reach", q.Reach).Msg("a run reaches hosts past the proxy")
	}
	return s.opened(run, token, a), nil
}

// access opens the run's own listener, if it asked for one. This comes before the run: one that nobody
// can use isn't opened.
func (s *Server) access(ctx context.Context, q *wire.OpenRun, token string) (access, error) {
	if !q.Listener {
		return access{s.config.Environment.ProxyAddr(), token}, nil
	}
	address, err := s.config.Environment.OpenListener(ctx, digestOf(token))
	if err != nil {
		return access{}, refuse("not-ready", "The run was not opened, for it can't have a listener of its own: %v.", err)
	}
	return access{address: address}, nil
}

// opened is the answer for a run that is open.
func (s *Server) opened(run *ledger.Run, token string, a access) *wire.OpenedRun {
	e := s.config.Environment
	return &wire.OpenedRun{
		ID: run.ID, Token: token, ProxyURL: a.url(), CAPEM: string(e.CAPEM()), Env: runEnviron(e, run, a), Run: runOf(run),
		ConnectorPorts: s.config.Rules().Ports(),
	}
}

// openCommand checks a request and turns it into the ledger's command.
func (s *Server) openCommand(q *wire.OpenRun) (ledger.OpenRun, error) {
	var faults faults
	faults.name("/workflow", q.Workflow)
	faults.optionalWord("OpenRun.items", q.Items)
	switch {
	case q.Items == string(ledger.ItemsMany) && !q.Once && q.Item == "" && q.Attempt == 0:
	case q.Items == string(ledger.ItemsMany):
		faults.add("/items", "given together with item, once or attempt", "leave those out: each request names its item")
	case q.Once && q.Item != "":
		faults.add("/once", "given together with item", "give one of them")
	case !q.Once && q.Item == "":
		faults.add("/item", "missing", "name the unit of work, or give once: true for work that is new at every run")
	default:
		faults.optionalName("/item", q.Item)
	}
	if q.Attempt < 0 {
		faults.add("/attempt", "negative", "count from 1, or leave it out for the current one")
	}
	faults.sentence("/title", q.Title)
	faults.sentence("/resume_hint", q.ResumeHint)
	faults.optionalWord("OpenRun.mutations", q.Mutations)
	faults.optionalWord("OpenRun.on_failure", q.OnFailure)
	faults.optionalWord("OpenRun.if_done", q.IfDone)
	faults.optionalWord("OpenRun.block_scope", q.BlockScope)
	faults.ttl("/ttl", q.TTL)
	faults.labels("/labels", q.Labels)
	faults.tolerate("/tolerate", q.Tolerate)
	faults.reach("/reach", q.Reach, s.config.Rules())
	if err := faults.err(); err != nil {
		return ledger.OpenRun{}, err
	}
	command := as[ledger.OpenRun](q)
	if command.Items != ledger.ItemsMany {
		command.Items = ledger.ItemsOne
	}
	if command.IfDone != ledger.IfDoneRead {
		command.IfDone = ledger.IfDoneRefuse
	}
	command.Mutations = cmp.Or(command.Mutations, ledger.MutationsMany)
	command.OnFailure = cmp.Or(command.OnFailure, ledger.FailureAbort)
	command.TTL, command.Labels = s.ttl(q.TTL), maps.Clone(q.Labels)
	return command, nil
}

// tolerate wants a few refusals.
func (f *faults) tolerate(where string, meant []string) {
	if len(meant) > maxTolerate {
		f.add(where, fmt.Sprintf("more than %d refusals", maxTolerate), "leave some out")
		return
	}
	for i, one := range meant {
		if code, host, _ := strings.Cut(one, ":"); code == "" || host == "" {
			f.add(fmt.Sprintf("%s/%d", where, i), "no CODE:HOST", "name the refusal's code and the host, such as unmatched:telemetry.example.com")
		}
	}
}

// reach wants a few targets that are no connector's hosts: a mutation there would pass unrecorded.
func (f *faults) reach(where string, targets []string, rules Rules) {
	if len(targets) > maxReach {
		f.add(where, fmt.Sprintf("more than %d targets", maxReach), "leave some out")
		return
	}
	for i, target := range targets {
		place := fmt.Sprintf("%s/%d", where, i)
		if what, how := names.TargetFault(target); what != "" {
			f.add(place, what, how)
		} else if rules.ConnectorHost(target) {
			f.add(place, target+" is a connector's host", "leave it out: what goes there must pass the proxy")
		}
	}
}

// labels wants a few short names and values, none of them the API's own.
func (f *faults) labels(where string, labels map[string]string) {
	if len(labels) > maxLabels {
		f.add(where, fmt.Sprintf("more than %d labels", maxLabels), "leave some out")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		place := where + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		f.name(place, name)
		f.optionalName(place, value)
		if strings.HasPrefix(name, reservedLabel) {
			f.add(place, "names that begin with "+reservedLabel+" are keep-proxy's own", "use another name")
		}
	}
}

// shownLabels leaves out what the API keeps for itself.
func shownLabels(labels map[string]string) map[string]string {
	shown := maps.Clone(labels)
	delete(shown, requestLabel)
	if len(shown) == 0 {
		return nil
	}
	return shown
}
