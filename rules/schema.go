package rules

import (
	"slices"
	"strings"
)

// APIVersion is the first line of every connector file that this version reads.
const APIVersion = "keep/v1"

// level is one kind of map in a connector file: the keys that work, and the keys
// of the format that are refused by name until they are built.
type level struct {
	name  string
	known []string
	later []string
}

// The levels of the format. Every key of docs/connectors.md is in exactly one of
// the two lists of its level.
var (
	levelConnector = level{
		name: "the connector",
		known: []string{
			"apiVersion", "connector", "version", "title", "hosts", "host_group", "reads", "account",
			"block_scope", "trust_refused", "rate", "operations", "cases",
		},
		later: []string{"aws"},
	}
	levelRate      = level{name: "rate", known: []string{"requests", "per"}}
	levelAccount   = level{name: "account", known: []string{"get", "value", "cache"}}
	levelOperation = level{
		name: "an operation",
		known: []string{
			"name", "match", "before", "effect", "describe", "identity", "subkey", "payload", "native_key",
			"marker", "outcome", "success", "reconcile", "on_absent", "manual_check", "max_body", "repeat",
			"secret", "settle", "absent_confirmations", "absent_spacing", "block_scope", "bounds",
			"encoded_slash", "timeout", "subkey_header", "drift", "was", "on_skip", "on_no_result", "max_dispatches", "watch",
			"verify_on_replay", "send", "compensate", "upgrade",
		},
		later: []string{
			"stream",
		},
	}
	levelCompensate = level{
		name: "compensate",
		known: []string{
			"post", "put", "patch", "delete", "header", "query", "json", "auto", "native_key", "outcome", "reconcile",
			"max_dispatches",
		},
	}
	levelSend = level{
		name:  "send",
		known: []string{"prepare", "commit", "post", "put", "patch", "header", "query", "json", "form", "expect", "keep"},
	}
	levelMatch = level{
		name:  "match",
		known: []string{"method", "path", "when"},
		later: []string{"graphql", "jsonrpc", "aws", "mail"},
	}
	levelPayload = level{
		name:  "payload",
		known: []string{"ignore", "minor", "headers", "normalise", "compare"},
	}
	levelNativeKey = level{
		name:  "native_key",
		known: []string{"header", "json", "form", "query", "format", "max_length", "window", "when_present"},
		later: []string{"graphql", "aws"},
	}
	levelMarker   = level{name: "marker", known: []string{"json", "form", "append", "text"}}
	levelOutcome  = level{name: "outcome", known: []string{"when", "then", "class", "otherwise"}}
	levelStrategy = level{name: "reconcile", known: []string{"resend", "probe", "exec", "none"}}
	levelExec     = level{name: "exec", known: []string{"command", "timeout", "memory", "output", "tie", "absence_is_proof"}}
	levelResend   = level{name: "resend", known: []string{"natural"}}
	levelProbe    = level{
		name: "probe",
		known: []string{
			"get", "post", "header", "query", "json", "result", "absence_is_proof", "expect", "observe",
			"candidates", "ours", "tie", "id", "created", "pages", "steps",
		},
	}
	levelStep = level{
		name: "a step",
		known: []string{
			"name", "get", "post", "header", "query", "json", "result", "absence_is_proof", "expect", "observe",
			"candidates", "ours", "tie", "id", "created", "pages",
		},
	}
	levelObserve    = level{name: "observe", known: []string{"when", "is", "step"}}
	levelPages      = level{name: "pages", known: []string{"next", "more", "set", "max"}}
	levelWatch      = level{name: "watch", known: []string{"get", "query", "header", "expect", "every", "until", "failed_when", "class", "max"}}
	levelResult     = level{name: "result", known: []string{"status", "header", "json"}, later: []string{"graphql"}}
	levelBounds     = level{name: "bounds", known: []string{"commit", "lag", "source"}}
	levelCase       = level{name: "a case", known: []string{"name", "request", "send", "undo", "response", "probe", "expect"}}
	levelCaseAsk    = level{name: "request", known: []string{"method", "url", "headers", "body"}}
	levelCaseAnswer = level{name: "an answer", known: []string{"status", "headers", "body"}}
	levelExpect     = level{
		name: "expect",
		known: []string{
			"operation", "identity", "subkey", "account", "refused", "sent", "kept", "verdict", "class", "observation", "result",
		},
	}
)

// nearest is the known name that a misspelt one probably means; "" if none is
// near.
func nearest(name string, known []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < distance && d < len(name) {
			best, distance = k, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions and replacements between a and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// listed joins words for a sentence.
func listed(words []string) string {
	sorted := slices.Clone(words)
	slices.Sort(sorted)
	return strings.Join(sorted, ", ")
}
