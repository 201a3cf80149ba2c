package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"keep-proxy/internal/strictyaml"
)

// A file is read by these.
type (
	value  = strictyaml.Value
	fields = strictyaml.Map
	level  = strictyaml.Level
)

// decoder reads one connector file and collects every problem.
type decoder struct {
	strictyaml.Reader
	findings Findings
	// undoing says that what is read may name the object that is taken back. A pinned file is a stored version.
	undoing, pinned bool
	// params are the values of the file's parameters.
	params parameterValues
}

func newDecoder(file string, pinned bool) *decoder {
	d := &decoder{pinned: pinned}
	d.Report = func(code string, at Where, problem, fix string) {
		d.findings = append(d.findings, Finding{
			Severity: SeverityError, Code: code, File: file, Line: at.Line, Column: at.Column,
			Key: at.Key, Value: printable(at.Value), Problem: problem, Fix: fix,
		})
	}
	return d
}

// mistaken reports what an earlier program accepted, or settings that are for another version by now. A stored version
// is loaded all the same. A mutation is asked about by the rule that it was sent by, mistakes included.
func (d *decoder) mistaken(code string, at strictyaml.Placed, problem, fix string) {
	if !d.pinned {
		d.Fail(code, at, problem, fix)
	}
}

// need is a required value; that it is missing is reported.
func (d *decoder) need(m fields, name string) value {
	if !m.Has(name) {
		d.Fail("missing", m.At(name), name+" is missing", "add "+name+":"+examples[name])
	}
	return m.At(name)
}

// examples are values that make plain what required keys take.
var examples = map[string]string{
	"operation": " query, or mutation",
	"version":   " 1", "hosts": " [api.example.com]", "tie": " marker, or vendor_key, unique or content",
	"ours": " found.metadata.keep_id == mutation.marker, or what else ties an object to the mutation",
	"per":  " 1m", "requests": " 100", "until": " response.json.status == 'done'", "max": " 1h",
}

// list are the elements of a list; none where there is no list.
func (d *decoder) list(v value) []value {
	items, _ := d.List(v)
	return items
}

// text reads a scalar as it is written. An empty one is an error.
func (d *decoder) text(v value) (string, bool) {
	s, ok := d.Scalar(v)
	if ok && s == "" {
		d.Fail("empty", v, "is empty", "give it a value or leave the key out")
	}
	return s, ok && s != ""
}

// texts reads a list of scalars, or one.
func (d *decoder) texts(v value) (out []string) {
	for _, item := range d.OneOrMore(v) {
		if s, ok := d.text(item); ok {
			out = append(out, s)
		}
	}
	return out
}

// word reads one of the allowed words; the fallback where there is none.
func word[T ~string](d *decoder, v value, fallback T, allowed ...T) T {
	s, ok := d.text(v)
	if !ok {
		return fallback
	}
	if slices.Contains(allowed, T(s)) {
		return T(s)
	}
	d.Fail("value", v, printable(s)+" is not one of its values", "write "+orWords(allowed))
	return fallback
}

// orWords writes a, b or c.
func orWords[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// boolean reads true or false.
func (d *decoder) boolean(v value) bool {
	if !d.Plain(v) {
		return false
	}
	if v.Tag != "!!bool" {
		d.Fail("type", v, "must be true or false", "write true or false without quotes")
		return false
	}
	return strings.EqualFold(v.Value, "true")
}

// number reads an integer within bounds; 0 when it isn't.
func (d *decoder) number(v value, least, most int) int {
	s, ok := d.text(v)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || v.Tag != "!!int" || n < least || n > most {
		d.Fail("value", v, "must be a whole number", fmt.Sprintf("write a number from %d to %d", least, most))
		return 0
	}
	return n
}

// duration reads a positive Go duration; 0 when it isn't.
func (d *decoder) duration(v value) time.Duration {
	s, ok := d.text(v)
	if !ok {
		return 0
	}
	t, err := time.ParseDuration(s)
	if err != nil || t <= 0 {
		d.Fail("value", v, "must be a duration above zero", "write a number with its unit, such as 90s, 5m or 24h")
		return 0
	}
	return t
}

// atMost is duration with a bound.
func (d *decoder) atMost(v value, most time.Duration, problem, fix string) time.Duration {
	t := d.duration(v)
	if t > most {
		d.Fail("value", v, problem, fix)
	}
	return t
}

// sizeUnits are the units of sizes, longest suffix first.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// size reads a positive size in bytes; 0 when it isn't.
func (d *decoder) size(v value) int64 {
	s, ok := d.text(v)
	if !ok {
		return 0
	}
	for _, unit := range sizeUnits {
		if digits, found := strings.CutSuffix(s, unit.suffix); found {
			if n, err := strconv.ParseInt(digits, 10, 32); err == nil && n > 0 {
				return n * unit.bytes
			}
		}
	}
	d.Fail("value", v, "must be a size above zero", "write a number with its unit, such as 64KiB or 10MiB")
	return 0
}

// APIVersion is the first line of every connector file that this version reads.
const APIVersion = "keep/v1"

// The levels of the format. Every key of docs/connectors.md is in exactly one of
// the two lists of its level.
var (
	levelConnector = level{
		Name: "the connector",
		Known: []string{
			"apiVersion", "connector", "extends", "was", "version", "title", "hosts", "paths", "host_group", "reads", "account",
			"parameters", "block_scope", "trust_refused", "rate", "outcome", "operations", "cases", "accept", "evidence", "aws",
		},
	}
	levelAWS       = level{Name: "aws", Known: []string{"service"}}
	levelParameter = level{Name: "a parameter", Known: []string{"type", "default", "description"}}
	levelRate      = level{Name: "rate", Known: []string{"requests", "per"}}
	levelAccount   = level{Name: "account", Known: []string{"get", "post", "json", "form", "token", "value", "cache", "given"}}
	levelToken     = level{Name: "token", Known: []string{"form", "json"}}
	levelOperation = level{
		Name: "an operation",
		Known: []string{
			"name", "match", "before", "effect", "describe", "identity", "subkey", "payload", "native_key",
			"marker", "outcome", "success", "reconcile", "on_absent", "manual_check", "max_body", "repeat",
			"secret", "settle", "absent_confirmations", "absent_spacing", "block_scope", "bounds",
			"encoded_slash", "empty_segments", "timeout", "subkey_header", "drift", "was", "on_skip", "on_no_result", "max_dispatches", "watch",
			"verify_on_replay", "send", "compensate", "upgrade", "accept", "evidence", "stream",
		},
	}
	levelCompensate = level{
		Name: "compensate",
		Known: []string{
			"post", "put", "patch", "delete", "header", "query", "json", "auto", "native_key", "outcome", "reconcile",
			"max_dispatches",
		},
	}
	levelSend = level{
		Name:  "send",
		Known: []string{"prepare", "commit", "post", "put", "patch", "header", "query", "json", "form", "expect", "keep"},
	}
	levelMatch = level{
		Name:  "match",
		Known: []string{"method", "path", "when", "graphql", "jsonrpc", "mail", "aws"},
	}
	levelAWSMatch = level{Name: "match.aws", Known: []string{"action"}}
	levelGraphQL  = level{Name: "graphql", Known: []string{"operation", "field", "persisted"}}
	levelJSONRPC  = level{Name: "jsonrpc", Known: []string{"method", "answer"}}
	levelMail     = level{Name: "mail", Known: []string{"from", "encoding"}}
	levelPayload  = level{
		Name:  "payload",
		Known: []string{"ignore", "minor", "headers", "normalise", "compare"},
	}
	levelNativeKey = level{
		Name: "native_key",
		Known: []string{
			"header", "json", "form", "query", "graphql", "aws", "format", "charset", "min_length", "max_length", "window", "replays",
			"mismatch", "when_present",
		},
	}
	levelMarker   = level{Name: "marker", Known: []string{"header", "json", "form", "query", "graphql", "append", "text", "value", "max_length"}}
	levelOutcome  = level{Name: "outcome", Known: []string{"when", "then", "class", "retry_after", "otherwise"}}
	levelStrategy = level{Name: "reconcile", Known: []string{"resend", "probe", "exec", "none"}}
	levelExec     = level{Name: "exec", Known: []string{"command", "timeout", "memory", "output", "tie", "absence_is_proof"}}
	levelResend   = level{Name: "resend", Known: []string{"natural"}}
	levelProbe    = level{
		Name: "probe",
		Known: []string{
			"get", "head", "post", "header", "query", "json", "result", "absence_is_proof", "expect", "observe",
			"candidates", "ours", "tie", "id", "created", "resolution", "pages", "steps",
		},
	}
	levelStep = level{
		Name:  "a step",
		Known: append(slices.DeleteFunc(slices.Clone(levelProbe.Known), func(key string) bool { return key == "steps" }), "name"),
	}
	levelObserve    = level{Name: "observe", Known: []string{"when", "is", "step"}}
	levelPages      = level{Name: "pages", Known: []string{"next", "more", "set", "max"}}
	levelWatch      = level{Name: "watch", Known: []string{"get", "query", "header", "expect", "every", "until", "failed_when", "class", "max"}}
	levelResult     = level{Name: "result", Known: []string{"status", "header", "json", "graphql"}}
	levelEvidence   = level{Name: "evidence", Known: []string{"claim", "url", "quote", "date", "status"}}
	levelBounds     = level{Name: "bounds", Known: []string{"commit", "lag", "source"}}
	levelCase       = level{Name: "a case", Known: []string{"name", "parameters", "request", "send", "undo", "response", "probe", "expect"}}
	levelCaseAsk    = level{Name: "request", Known: []string{"method", "url", "headers", "body"}}
	levelCaseAnswer = level{Name: "an answer", Known: []string{"status", "headers", "body"}}
	levelExpect     = level{
		Name: "expect",
		Known: []string{
			"operation", "identity", "subkey", "account", "refused", "sent", "kept", "verdict", "class", "asked", "observation", "result",
		},
	}
)

// listed joins words for a sentence.
func listed(words []string) string {
	sorted := slices.Clone(words)
	slices.Sort(sorted)
	return strings.Join(sorted, ", ")
}
