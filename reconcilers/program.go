package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"

	programs "keep-proxy/internal/program"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// program asks a program of the rule: it gets the record as JSON on standard input and
// answers in JSON.
type program struct{ *Reconciler }

// programInput is what a program gets. It holds no credential, and secret places are
// masked as they are in the ledger.
type programInput struct {
	Version    int               `json:"version"`
	Connector  string            `json:"connector"`
	Operation  string            `json:"operation"`
	Account    string            `json:"account"`
	Target     string            `json:"target"`
	Mutation   programMutation   `json:"mutation"`
	Request    programRequest    `json:"request"`
	Dispatches []programDispatch `json:"dispatches"`
}

type programMutation struct {
	ID         string    `json:"id"`
	Marker     string    `json:"marker"`
	VendorKey  string    `json:"vendor_key"`
	Generation int       `json:"generation"`
	ClaimedAt  time.Time `json:"claimed_at"`
	// SameBoot says that ClaimedAt is by the clock of now; else by that of then.
	SameBoot  bool                       `json:"same_boot"`
	Committed bool                       `json:"committed"`
	Identity  map[string]json.RawMessage `json:"identity"`
	Subkey    string                     `json:"subkey"`
	Workflow  string                     `json:"workflow"`
	Item      string                     `json:"item"`
	Attempt   int                        `json:"attempt"`
	// Kept is there in a sending in steps, once something is kept.
	Kept map[string]json.RawMessage `json:"kept,omitempty"`
}

type programRequest struct {
	Method string      `json:"method"`
	URL    string      `json:"url"`
	Header http.Header `json:"headers"`
	// Body is the text, or Base64 holds what is none.
	Body   string `json:"body,omitempty"`
	Base64 []byte `json:"base64,omitempty"`
}

type programDispatch struct {
	StartedAt    time.Time `json:"started_at"`
	EndedAt      time.Time `json:"ended_at,omitzero"`
	BytesWritten int64     `json:"bytes_written"`
	Status       int       `json:"status,omitempty"`
	Verdict      string    `json:"verdict,omitempty"`
	Reason       string    `json:"reason,omitempty"`
}

// programAnswer is what a program says.
type programAnswer struct {
	Seen    string         `json:"seen"`
	Reason  string         `json:"reason"`
	Objects []string       `json:"objects"`
	Result  *programResult `json:"result"`
	// Unreached says that the API could not be reached, so that the try doesn't count.
	Unreached bool `json:"unreached"`
}

type programResult struct {
	Status int               `json:"status"`
	Header map[string]string `json:"headers"`
	// Body is JSON; Text is content of any other kind.
	Body json.RawMessage `json:"body"`
	Text *string         `json:"text"`
}

func (p program) try(ctx context.Context, t *try) (outcome, bool) {
	return p.observe(ctx, t, p.ask(ctx, t)), true
}

// ask runs the program, once the connector's rate admits it, and says what it saw. Whatever goes
// wrong is a retry.
func (p program) ask(ctx context.Context, t *try) sighting {
	if err := p.limits.wait(ctx, t.connector); err != nil {
		return sighting{reason: "the try was over before the connector's rate admitted it"}
	}
	t.at = p.now()
	input, err := json.Marshal(inputOf(t, t.at))
	if err != nil {
		return sighting{reached: true, reason: "the record can't be given to the program"}
	}
	e := t.strategy.Exec
	out, err := programs.Run(ctx, programs.Spec{
		Args: e.Command, Env: programs.PlainEnvironment(os.Environ()), Stdin: input,
		Timeout: e.Timeout, MaxOutput: e.Output, MaxMemory: e.Memory,
	})
	if err != nil {
		// One that hangs would else be asked for ever. A program says itself that the API can't be reached.
		return sighting{reached: ctx.Err() == nil, reason: err.Error()}
	}
	answer, err := decodeAnswer(out)
	if err != nil {
		return sighting{reached: true, reason: "the program's answer can't be used: " + err.Error()}
	}
	return answer.sighting(e)
}

// inputOf is the record as a program may see it now.
func inputOf(t *try, now ledger.Stamp) programInput {
	m := t.mutation
	claimed, sameBoot := claimedAt(m, now)
	in := programInput{
		Version: 1, Connector: m.Connector, Operation: m.Operation, Account: m.Account, Target: m.Target,
		Mutation: programMutation{
			ID: m.ID, Marker: m.Marker, VendorKey: m.VendorKey, Generation: m.Generation, ClaimedAt: claimed, SameBoot: sameBoot,
			Committed: m.Committed, Identity: map[string]json.RawMessage{}, Subkey: m.Subkey,
			Workflow: m.Workflow, Item: m.Item, Attempt: m.Attempt,
		},
		Request:    programRequest{Method: m.Request.Method, URL: m.Request.URL, Header: http.Header(m.Request.Header)},
		Dispatches: []programDispatch{},
	}
	for name, value := range m.Identity {
		in.Mutation.Identity[name] = json.RawMessage(value)
	}
	for name, value := range m.Kept {
		if in.Mutation.Kept == nil {
			in.Mutation.Kept = map[string]json.RawMessage{}
		}
		in.Mutation.Kept[name] = json.RawMessage(value)
	}
	if body := t.request.Body(); utf8.Valid(body) {
		in.Request.Body = string(body)
	} else {
		in.Request.Base64 = body
	}
	for i := range m.Dispatches {
		d := &m.Dispatches[i]
		in.Dispatches = append(in.Dispatches, programDispatch{
			StartedAt: d.Started.Wall, EndedAt: d.Ended.Wall, BytesWritten: d.BytesWritten, Status: d.Status,
			Verdict: string(d.Verdict), Reason: d.Reason,
		})
	}
	return in
}

// decodeAnswer reads one JSON object without unknown, repeated or misspelt members. Of two that
// differ nobody could say which one was meant.
func decodeAnswer(out []byte) (*programAnswer, error) {
	var a programAnswer
	if err := strict.Unmarshal(out, &a, strict.RejectUnknownMembers(true)); err != nil {
		return nil, errors.New("it is no JSON object of the documented form")
	}
	return &a, a.check()
}

// check reports what is wrong with an answer in itself.
func (a *programAnswer) check() error {
	found := len(a.Objects)
	switch ledger.Seen(a.Seen) {
	case ledger.SeenApplied:
		if found != 1 {
			return fmt.Errorf("applied needs the id of the one object in objects, and there are %d", found)
		}
	case ledger.SeenDuplicate:
		if found < 2 {
			return fmt.Errorf("duplicate needs the ids of the objects in objects, and there are %d", found)
		}
		if len(slices.Compact(slices.Sorted(slices.Values(a.Objects)))) != found {
			return errors.New("an object is there twice: one is no duplicate of itself")
		}
	case ledger.SeenAbsent, ledger.SeenRetry:
		if found > 0 || a.Result != nil {
			return errors.New(a.Seen + " has neither objects nor a result")
		}
	default:
		return errors.New("seen is none of applied, absent, duplicate and retry")
	}
	if a.Unreached && ledger.Seen(a.Seen) != ledger.SeenRetry {
		return errors.New("unreached goes with retry only")
	}
	if slices.Contains(a.Objects, "") {
		return errors.New("an object has no id")
	}
	if r := a.Result; r != nil && (r.Status < 200 || r.Status > 299 || r.Text != nil && r.Body != nil) {
		return errors.New("result needs a status from 200 to 299, and at most one of body and text")
	}
	return nil
}

// sighting is what the program saw, as the rule lets it count.
func (a *programAnswer) sighting(e *rules.Exec) sighting {
	s := sighting{
		seen: ledger.Seen(a.Seen), reason: a.Reason, objects: a.Objects, strong: e.Tie.Strong(), proof: e.AbsenceIsProof,
		reached: !a.Unreached, evidence: fmt.Sprintf("a program of the rule: %s", a.Seen),
	}
	if s.reason == "" {
		s.reason = "the program says so"
	}
	r := a.Result
	if r == nil {
		return s
	}
	s.result = &rules.Response{Status: r.Status, Header: http.Header{}, Body: r.Body, Complete: true}
	if r.Body != nil {
		s.result.Header.Set("Content-Type", "application/json")
	}
	if r.Text != nil {
		s.result.Body = []byte(*r.Text)
	}
	for name, value := range r.Header {
		if strings.ContainsAny(name+value, "\r\n\x00") {
			continue
		}
		s.result.Header.Set(name, value)
	}
	return s
}
