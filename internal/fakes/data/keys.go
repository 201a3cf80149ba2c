package data

import (
	"encoding/json"
	"fmt"
	"net/http"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/vendorkey"
)

// keyUse is the key of one request; without a key, key is "".
type keyUse struct{ scope, key, digest string }

// begin takes in the request's key. It answers a request that doesn't run.
func (f *Fake) begin(r *route, v values, c *server.Call) (use keyUse, answered *server.Answer, err error) {
	k := f.file.Keys
	if k == nil || r.Keyless {
		return use, nil, nil
	}
	if use.key, err = k.At.str(v); err != nil || use.key == "" {
		return use, nil, err
	}
	if k.MaxLength > 0 && len(use.key) > k.MaxLength {
		answered, err = f.answer(orStatus(k.TooLong, http.StatusBadRequest), v)
		return use, answered, err
	}
	use.scope, use.digest = fmt.Sprint(v["scope"]), c.Digest
	if k.Scope != nil {
		if use.scope, err = k.Scope.str(v); err != nil {
			return use, nil, err
		}
	}
	if k.Payload != nil {
		payload, err := k.Payload.eval(v)
		if err != nil {
			return use, nil, err
		}
		text, err := json.Marshal(shown(payload))
		if err != nil {
			return use, nil, err
		}
		use.digest = digest(text)
	}
	switch k.Differs {
	case "cached":
		use.digest = ""
	case "separate":
		use.key += "\n" + use.digest
	}
	meaning, kept := f.keys.Begin(use.scope, use.key, use.digest, c.Now())
	if meaning == vendorkey.Mismatch && k.Differs == "executed" {
		f.keys.Drop(use.scope, use.key)
		meaning, kept = f.keys.Begin(use.scope, use.key, use.digest, c.Now())
	}
	switch meaning {
	case vendorkey.Fresh:
		return use, nil, nil
	case vendorkey.Replay:
		answered, err = f.repeated(kept, v)
	case vendorkey.Busy:
		answered, err = f.answer(orStatus(k.Busy, http.StatusConflict), v)
	case vendorkey.Mismatch:
		answered, err = f.answer(orStatus(k.Mismatch, http.StatusConflict), v)
	}
	return use, answered, err
}

// repeated is what a repeat under a known key gets.
func (f *Fake) repeated(kept oracle.Kept, v values) (*server.Answer, error) {
	k := f.file.Keys
	if k.Repeat != nil {
		return f.answer(k.Repeat, v)
	}
	a := &server.Answer{Status: kept.Status, Header: http.Header{}, Body: kept.Body}
	for name, value := range kept.Header {
		a.Header.Set(name, value)
	}
	return a, fields(a.Header, v, k.Replayed, f.file.Header)
}

// keep is what is kept under the key, nil for nothing.
func (k *keyRule) keep(use keyUse, a *server.Answer) *oracle.Kept {
	if k == nil || use.key == "" || k.Replays == "success" && a.Status >= http.StatusMultipleChoices {
		return nil
	}
	return vendorkey.Kept(use.scope, use.key, use.digest, a.Status, a.Header, a.Body)
}

func orStatus(a *answer, status int) *answer {
	if a != nil {
		return a
	}
	return &answer{Status: status}
}
