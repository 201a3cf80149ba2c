package histories

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"keep-proxy/rules"
)

// Versions of the API's connector, as an author changes it between runs: the first one, one
// whose identities have another form, so that every key is another one, and one in which two
// operations have another name too, of which one doesn't say so.
const versions = 3

// loadRules loads a version of the connectors, with replacements of old and new texts. Each
// operation has a connector of its own, so that a rule is about one operation alone.
func loadRules(t *testing.T, version int, replace ...string) *rules.Set {
	t.Helper()
	var files []rules.File
	used := make([]bool, len(replace))
	for _, op := range slices.Sorted(maps.Keys(operationTexts)) {
		text := fmt.Sprintf(connectorText, op, op, hostOf(op), op) + operationTexts[op]
		if version > 0 {
			text = strings.NewReplacer(
				"version: 1", "version: 2",
				"identity: {reference: json.reference}", "identity: {reference: json.reference, kind: \"'thing'\"}",
			).Replace(text)
		}
		if version > 1 {
			text = strings.NewReplacer("version: 2", "version: 3", "name: probed", "name: looked\n    was: [probed]", "name: again", "name: repeated").Replace(text)
		}
		for i := 0; i < len(replace); i += 2 {
			used[i] = used[i] || strings.Contains(text, replace[i])
			text = strings.ReplaceAll(text, replace[i], replace[i+1])
		}
		files = append(files, rules.File{Name: op + ".yaml", Data: []byte(text)})
	}
	for i := 0; i < len(replace); i += 2 {
		if !used[i] {
			t.Fatalf("the rules don't hold %q", replace[i])
		}
	}
	set, findings := rules.Load(files, nil, rules.Defaults{})
	if set == nil {
		t.Fatalf("the rules don't load: %v", findings)
	}
	return set
}

// hostOf is where an operation is asked for.
func hostOf(operation string) string { return operation + ".test" }

// connectorText begins a connector.
const connectorText = `apiVersion: keep/v1
connector: %s
version: 1
title: The API's %s
hosts: ["%s"]
reads: safe-methods
rate: {requests: 100000, per: 1s}
operations:
  - name: %s
`

// operationTexts are the operations. Their numbers cover the bounds that the API keeps.
var operationTexts = map[string]string{
	"keyed": `    match: {method: POST, path: /keyed}
    native_key: {header: Idempotency-Key, format: uuid, window: 24h}
    reconcile:
      - resend: {}
` + probing + marked,
	"again": `    match: {method: POST, path: /again}
    native_key: {header: Idempotency-Key, format: uuid, window: 24h}
    on_absent: redispatch
    max_dispatches: 3
    reconcile:
` + probing + marked,
	"probed": `    match: {method: POST, path: /probed}
    reconcile:
` + probing + marked,
	"blind": `    match: {method: POST, path: /blind}
    reconcile:
      - none: "nothing can be asked"
` + marked,
	"split": `    match: {method: POST, path: /split}
    subkey_header: optional
    reconcile:
` + probing + marked,
	"dear": `    match: {method: POST, path: /dear}
    drift: refuse
    reconcile:
` + probing + marked,
	"doubled": `    match: {method: POST, path: /doubled}
    compensate:
      delete: "/things/{object}"
      auto: true
      max_dispatches: 3
    reconcile:
` + probing + marked,
	"owed": `    match: {method: POST, path: /owed}
    compensate:
      delete: "/things/{object}"
      max_dispatches: 3
    reconcile:
` + probing + marked,
	"warned": `    match: {method: POST, path: /warned}
    verify_on_replay: warn
    reconcile:
` + probing + marked,
	"strict": `    match: {method: POST, path: /strict}
    verify_on_replay: strict
    reconcile:
` + probing + marked,
	"shown": `    match: {method: POST, path: /shown}
    verify_on_replay: human
    reconcile:
` + probing + marked,
	"placed": `    match: {method: PUT, path: "/places/{place}"}
    reconcile:
      - resend: {natural: true}
      - none: "it can only be set again"
` + marked,
	"drafted": `    match: {method: POST, path: /drafted}
    send:
      - prepare: draft
        post: /drafts
        json: {reference: {cel: json.reference}, amount: {cel: json.amount}, keep_id: {cel: mutation.marker}}
        keep: {draft: response.json.draft}
      - commit:
        post: /drafts/send
        json: {draft: {cel: mutation.kept.draft}}
    reconcile:
      - probe:
          get: "/drafts/{mutation.kept.draft}"
          observe:
            - {when: response.json.sent, is: applied}
            - {when: "!response.json.sent", is: absent}
          absence_is_proof: true
          result: {status: 201, json: {cel: response.json}}
` + common + quick,
	"alike": `    match: {method: POST, path: /alike}
    reconcile:
` + strings.NewReplacer("found.keep_id == mutation.marker", "found.amount == json.amount", "tie: marker", "tie: content").Replace(probing) + marked,
	"watched": `    match: {method: POST, path: /watched}
    watch:
      get: "/jobs/{response.json.job}"
      every: 5s
      until: response.json.state == 'done'
      failed_when: response.json.state == 'failed'
      max: 40s
    marker: {json: keep_id}
    settle: 100s
    bounds: {commit: 90s, lag: 5s, source: "the simulated API"}
    reconcile:
` + probing + common,
}

const probing = `      - probe:
          get: /things
          query: {reference: {cel: json.reference}, since: {cel: string(mutation.claimed_at - duration('6m'))}}
          pages:
            more: response.json.more
            set: {cursor: {cel: response.json.next}}
            max: 10
          candidates: response.json.items
          ours: found.keep_id == mutation.marker
          tie: marker
          id: found.id
          created: timestamp(found.created_at)
          absence_is_proof: true
          result: {status: 201, header: {content-type: application/json}, json: {cel: found}}
`

const common = `    effect: mutation
    describe: "Thing {json.reference}"
    identity: {reference: json.reference}
    manual_check: "Is there a thing with reference {json.reference}?"
    absent_confirmations: 2
    absent_spacing: 5s
`

const quick = `    settle: 60s
    bounds: {commit: 40s, lag: 5s, source: "the simulated API"}
`

const marked = common + quick + `    marker: {json: keep_id}
`

func TestTheRulesLoad(t *testing.T) {
	for version := range versions {
		loadRules(t, version)
	}
}
