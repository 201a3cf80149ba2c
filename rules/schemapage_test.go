package rules

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

var update = flag.Bool("update", false, "write the schema of connector files")

// schemaFile is what keep-proxy schema prints, and what editors read.
const schemaFile = "../connectors/connector.schema.json"

// js is a part of a JSON Schema.
type js = map[string]any

// Kinds of values. A scalar is text, however YAML takes it.
var (
	textKind     = js{"type": []string{"string", "number", "boolean"}}
	nullKind     = js{"type": "null"}
	boolKind     = js{"type": "boolean"}
	countKind    = js{"type": "integer", "minimum": 0}
	durationKind = js{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}
	sizeKind     = js{"type": "string", "pattern": `^[0-9]+(B|KiB|MiB|GiB)$`}
	anyKind      = js{}
	textsKind    = some(textKind)
	textMapKind  = mapKind(textKind)
	anyMapKind   = mapKind(anyKind)
)

func listKind(of js) js { return js{"type": "array", "items": of} }
func mapKind(of js) js  { return js{"type": "object", "additionalProperties": of} }
func some(of js) js     { return either(of, listKind(of)) }
func either(of ...js) js {
	return js{"anyOf": of}
}
func level0(l level) js { return js{"$ref": "#/$defs/" + strings.ReplaceAll(l.Name, " ", "-")} }
func words0[T ~string](list ...T) js {
	return js{"enum": list}
}

// keyKinds are what each key of a level takes. Keys that several levels have are under "".
func keyKinds() map[string]map[string]js {
	strategies, outcomes := listKind(level0(levelStrategy)), listKind(level0(levelOutcome))
	requests := some(level0(levelCaseAsk))
	answers := some(level0(levelCaseAnswer))
	return map[string]map[string]js{
		"": {
			"get": textKind, "head": textKind, "post": textKind, "put": textKind, "patch": textKind, "delete": textKind, "header": anyMapKind, "query": anyMapKind,
			"json": anyKind, "form": anyMapKind, "expect": textKind, "when": textKind, "text": textKind, "value": textKind, "name": textKind,
			"title": textKind, "describe": textKind, "class": words0(classes...), "timeout": durationKind, "max_dispatches": countKind,
			"block_scope": words0("workflow", "item", "mutation"), "accept": some(textMapKind), "was": textsKind, "native_key": level0(levelNativeKey),
			"outcome": outcomes, "reconcile": strategies, "result": level0(levelResult), "status": countKind, "graphql": anyKind, "tie": words0(TieVendorKey, TieMarker, TieUnique, TieContent),
			"absence_is_proof": boolKind, "method": textsKind, "headers": mapKind(textsKind), "body": anyKind, "operation": textKind, "identity": anyKind,
			"subkey": textKind, "account": textKind, "max_length": either(countKind, sizeKind), "evidence": listKind(level0(levelEvidence)),
			"parameters": anyMapKind, "max": either(countKind, durationKind), "url": textKind,
		},
		"the connector": {
			"apiVersion": js{"const": APIVersion}, "connector": textKind, "extends": textKind, "version": countKind, "hosts": textsKind, "paths": textsKind, "host_group": textKind,
			"reads": either(words0("safe-methods"), listKind(textKind)), "account": either(textKind, level0(levelAccount)),
			"parameters": mapKind(level0(levelParameter)), "trust_refused": boolKind, "rate": level0(levelRate),
			"operations": listKind(level0(levelOperation)), "cases": listKind(level0(levelCase)), "aws": level0(levelAWS),
		},
		"a parameter": {"type": words0("text", "number", "boolean", "list"), "default": textsKind, "description": textKind},
		"rate":        {"requests": countKind, "per": durationKind},
		"account":     {"token": level0(levelToken), "cache": durationKind, "given": textKind},
		"token":       {"form": textKind, "json": textKind},
		"an operation": {
			"match": some(level0(levelMatch)), "before": textsKind, "effect": words0("read", "mutation", "deny", "ignore"),
			"identity": either(words0("none"), textMapKind), "payload": level0(levelPayload), "marker": some(level0(levelMarker)), "success": textKind,
			"on_absent": words0(OnAbsentFail, OnAbsentRedispatch, OnAbsentEscalate), "manual_check": textKind, "max_body": sizeKind,
			"repeat": words0(RepeatRefuse, RepeatReplay), "secret": textsKind, "settle": durationKind, "absent_confirmations": countKind,
			"absent_spacing": durationKind, "bounds": level0(levelBounds), "encoded_slash": words0("keep"), "empty_segments": words0("keep"),
			"subkey_header": words0(SubkeyForbidden, SubkeyOptional, SubkeyRequired), "drift": words0(DriftWarn, DriftRefuse, DriftAllow),
			"on_skip": level0(levelResult), "on_no_result": level0(levelResult), "watch": level0(levelWatch),
			"verify_on_replay": words0(VerifyOff, VerifyWarn, VerifyStrict, VerifyHuman), "send": listKind(level0(levelSend)),
			"compensate": level0(levelCompensate), "upgrade": textsKind, "stream": boolKind,
		},
		"compensate": {"auto": boolKind},
		"send":       {"prepare": textKind, "commit": nullKind, "keep": textMapKind},
		"match":      {"path": textKind, "graphql": level0(levelGraphQL), "jsonrpc": level0(levelJSONRPC), "mail": level0(levelMail), "aws": level0(levelAWSMatch)},
		"match.aws":  {"action": textsKind}, "aws": {"service": textKind},
		"graphql": {"operation": words0("query", "mutation"), "field": textsKind, "persisted": anyKind},
		"jsonrpc": {"answer": boolKind},
		"mail":    {"from": textKind, "encoding": words0("base64", "base64url")},
		"payload": {"ignore": textsKind, "minor": textsKind, "headers": textsKind, "normalise": mapKind(textsKind), "compare": textKind},
		"native_key": {
			"header": textKind, "json": textKind, "form": textKind, "query": textKind, "graphql": textKind, "aws": textKind, "format": words0("uuid", "uuid4", "hex", "token"),
			"charset": textKind, "min_length": countKind, "window": durationKind,
			"replays":      words0(ReplaysAll, ReplaysSuccess, ReplaysNone, ReplaysConflict),
			"mismatch":     words0(MismatchError, MismatchCached, MismatchExecuted, MismatchSeparate),
			"when_present": words0(PresentReplace, PresentKeepFirst, PresentRefuse),
		},
		"marker":    {"header": textKind, "json": textKind, "form": textKind, "query": textKind, "graphql": textKind, "append": textKind, "value": anyKind},
		"outcome":   {"then": words0("applied", "failed", "continues", "uncertain"), "retry_after": textKind, "otherwise": words0("uncertain")},
		"reconcile": {"resend": level0(levelResend), "probe": level0(levelProbe), "exec": either(listKind(textKind), level0(levelExec)), "none": textKind},
		"exec":      {"command": textsKind, "memory": sizeKind, "output": sizeKind},
		"resend":    {"natural": boolKind},
		"probe": {
			"observe": listKind(level0(levelObserve)), "candidates": textKind, "ours": textKind, "id": textKind, "created": textKind,
			"resolution": durationKind, "pages": level0(levelPages), "steps": listKind(level0(levelStep)),
		},
		"observe":   {"is": words0("applied", "absent", "retry"), "step": textKind},
		"pages":     {"next": words0("link"), "more": textKind, "set": anyMapKind, "max": countKind},
		"watch":     {"every": durationKind, "until": textKind, "failed_when": textKind},
		"result":    {},
		"evidence":  {"claim": textKind, "quote": textKind, "date": textKind, "status": words0(EvidenceVerified, EvidenceReported, EvidenceUnverified)},
		"bounds":    {"commit": durationKind, "lag": durationKind, "source": textKind},
		"a case":    {"request": level0(levelCaseAsk), "send": answers, "undo": textKind, "response": level0(levelCaseAnswer), "probe": answers, "expect": level0(levelExpect)},
		"request":   {},
		"an answer": {},
		"expect": {
			"refused": textKind, "sent": requests, "kept": anyMapKind, "asked": requests, "verdict": words0("default", "applied", "failed", "uncertain"),
			"observation": words0("applied", "absent", "duplicate", "retry"), "result": level0(levelCaseAnswer),
		},
	}
}

// schemaOf is the schema of all levels, with what docs/connectors.md says of each key.
func schemaOf(t *testing.T) js {
	t.Helper()
	told := map[string]string{}
	for section := range strings.SplitSeq(between(t, "keys"), "\n### ") {
		name, table, _ := strings.Cut(section, "\n")
		for _, cells := range rowsOf(table) {
			for _, key := range words(cells[0]) {
				told[name+"."+key] = strings.TrimSuffix(strings.NewReplacer("`", "", "**", "").Replace(link.ReplaceAllString(cells[1], "$1")), " |")
			}
		}
	}
	defs, all := js{}, keyKinds()
	all["a step"] = all["probe"]
	for _, l := range append(levels(), levelGraphQL) {
		properties := js{}
		for _, key := range l.Known {
			kind := all[l.Name][key]
			if kind == nil {
				kind = all[""][key]
			}
			if kind == nil {
				t.Errorf("%s: nothing says what %s takes: add it to keyKinds", l.Name, key)
			}
			property := js{}
			maps.Copy(property, kind)
			if text := told[l.Name+"."+key]; text != "" {
				property["description"] = text
			}
			properties[key] = property
		}
		defs[strings.ReplaceAll(l.Name, " ", "-")] = js{"type": "object", "additionalProperties": false, "properties": properties}
	}
	return js{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A connector file of keep-proxy", "$defs": defs, "$ref": level0(levelConnector)["$ref"],
	}
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// TestSchemaPage writes the schema with -update.
func TestSchemaPage(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	to.SetIndent("", " ")
	if err := to.Encode(schemaOf(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(schemaFile); err != nil || !bytes.Equal(have, out.Bytes()) {
		t.Error("the schema is not what the loader takes: go test ./rules -run TestSchemaPage -update")
	}
}

// compiled is the schema, ready to be held against files.
func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := json.Marshal(schemaOf(t))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("connector.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("connector.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// instance is a YAML file as editors hold it against a schema.
func instance(t *testing.T, data []byte) any {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		t.Fatal(err)
	}
	var of func(n *yaml.Node) any
	of = func(n *yaml.Node) any {
		switch n.Kind {
		case yaml.MappingNode:
			out := map[string]any{}
			for i := 0; i+1 < len(n.Content); i += 2 {
				out[n.Content[i].Value] = of(n.Content[i+1])
			}
			return out
		case yaml.SequenceNode:
			out := []any{}
			for _, item := range n.Content {
				out = append(out, of(item))
			}
			return out
		}
		if slices.Contains([]string{"!!int", "!!float", "!!bool", "!!null"}, n.Tag) {
			if v, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.ToLower(n.Value))); err == nil {
				return v
			}
			if n.Tag == "!!null" {
				return nil
			}
		}
		return n.Value
	}
	return of(n.Content[0])
}

func TestWhatLoadsFitsTheSchema(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for _, level := range formatKeys {
		for _, line := range level.works {
			if err := schema.Validate(instance(t, []byte(level.file(line)))); err != nil {
				t.Errorf("%s: %s\n%v", level.level, line, err)
			}
		}
	}
	files, err := filepath.Glob("../connectors/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance(t, data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Wherever the loader knows a level, an unknown key there is told by the schema too.
func TestWhatIsUnknownDoesntFitTheSchema(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for _, text := range []string{
		withOperation("unknown: 1"), withOperation("effect: change"), withOperation("settle: 5"), withOperation("match: {methods: POST}"),
		withOperation("reconcile: [{probe: {got: /a}}]"), withOperation("native_key: {header: k, format: guid}"), withOperation("on_absent: retry"),
		withOperation("marker: {json: a, txt: b}"), "unknown: 1\n" + connectorHead + simpleMutation, "account: {put: /me}\n" + connectorHead + simpleMutation,
	} {
		set, _ := Load([]File{{Data: []byte(text)}}, nil, Defaults{})
		if err := schema.Validate(instance(t, []byte(text))); err == nil || set != nil {
			t.Errorf("fits %v, loads %v:\n%s", err == nil, set != nil, text)
		}
	}
}
