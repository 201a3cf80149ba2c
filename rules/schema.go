package rules

import (
	"slices"
	"strings"
)

// APIVersion is the first line of every connector file that this version reads.
const APIVersion = "keep/v1"

// The levels of the format. Every key of docs/connectors.md is in exactly one of
// the two lists of its level.
var (
	levelConnector = level{
		Name: "the connector",
		Known: []string{
			"apiVersion", "connector", "version", "title", "hosts", "host_group", "reads", "account",
			"block_scope", "trust_refused", "rate", "operations", "cases",
		},
		Later: []string{"aws"},
	}
	levelRate      = level{Name: "rate", Known: []string{"requests", "per"}}
	levelAccount   = level{Name: "account", Known: []string{"get", "value", "cache"}}
	levelOperation = level{
		Name: "an operation",
		Known: []string{
			"name", "match", "before", "effect", "describe", "identity", "subkey", "payload", "native_key",
			"marker", "outcome", "success", "reconcile", "on_absent", "manual_check", "max_body", "repeat",
			"secret", "settle", "absent_confirmations", "absent_spacing", "block_scope", "bounds",
			"encoded_slash", "timeout", "subkey_header", "drift", "was", "on_skip", "on_no_result", "max_dispatches", "watch",
			"verify_on_replay", "send", "compensate", "upgrade",
		},
		Later: []string{
			"stream",
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
		Known: []string{"method", "path", "when"},
		Later: []string{"graphql", "jsonrpc", "aws", "mail"},
	}
	levelPayload = level{
		Name:  "payload",
		Known: []string{"ignore", "minor", "headers", "normalise", "compare"},
	}
	levelNativeKey = level{
		Name:  "native_key",
		Known: []string{"header", "json", "form", "query", "format", "max_length", "window", "when_present"},
		Later: []string{"graphql", "aws"},
	}
	levelMarker   = level{Name: "marker", Known: []string{"json", "form", "append", "text"}}
	levelOutcome  = level{Name: "outcome", Known: []string{"when", "then", "class", "otherwise"}}
	levelStrategy = level{Name: "reconcile", Known: []string{"resend", "probe", "exec", "none"}}
	levelExec     = level{Name: "exec", Known: []string{"command", "timeout", "memory", "output", "tie", "absence_is_proof"}}
	levelResend   = level{Name: "resend", Known: []string{"natural"}}
	levelProbe    = level{
		Name: "probe",
		Known: []string{
			"get", "post", "header", "query", "json", "result", "absence_is_proof", "expect", "observe",
			"candidates", "ours", "tie", "id", "created", "pages", "steps",
		},
	}
	levelStep = level{
		Name: "a step",
		Known: []string{
			"name", "get", "post", "header", "query", "json", "result", "absence_is_proof", "expect", "observe",
			"candidates", "ours", "tie", "id", "created", "pages",
		},
	}
	levelObserve    = level{Name: "observe", Known: []string{"when", "is", "step"}}
	levelPages      = level{Name: "pages", Known: []string{"next", "more", "set", "max"}}
	levelWatch      = level{Name: "watch", Known: []string{"get", "query", "header", "expect", "every", "until", "failed_when", "class", "max"}}
	levelResult     = level{Name: "result", Known: []string{"status", "header", "json"}, Later: []string{"graphql"}}
	levelBounds     = level{Name: "bounds", Known: []string{"commit", "lag", "source"}}
	levelCase       = level{Name: "a case", Known: []string{"name", "request", "send", "undo", "response", "probe", "expect"}}
	levelCaseAsk    = level{Name: "request", Known: []string{"method", "url", "headers", "body"}}
	levelCaseAnswer = level{Name: "an answer", Known: []string{"status", "headers", "body"}}
	levelExpect     = level{
		Name: "expect",
		Known: []string{
			"operation", "identity", "subkey", "account", "refused", "sent", "kept", "verdict", "class", "observation", "result",
		},
	}
)

// listed joins words for a sentence.
func listed(words []string) string {
	sorted := slices.Clone(words)
	slices.Sort(sorted)
	return strings.Join(sorted, ", ")
}
