package ledgertest

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"keep-proxy/ledger"
)

// Epoch is the time at which samples were made.
var Epoch = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// SampleMutation returns a record in the given state with every kind of field set,
// created n seconds after Epoch. Its key follows from name. It belongs to workflow
// "refunds", item "order-1", run "run-1"; change what a test needs otherwise.
func SampleMutation(name string, state ledger.State, n int) *ledger.Mutation {
	k := ledger.Key(sha256.Sum256([]byte(name)))
	at := Epoch.Add(time.Duration(n) * time.Second)
	stamp := ledger.Stamp{Wall: at, Mono: time.Hour, Boot: 2 * time.Hour, BootID: "boot"}
	m := &ledger.Mutation{
		Version: 1, CreatedAt: at, UpdatedAt: at,
		Intent: ledger.Intent{
			Key: k, ID: k.ID(),
			Connector: "stripe", ConnectorVersion: 3, ConnectorHash: hash("rules"), Operation: "refund",
			Target: "Refund 12 of " + name, Account: "acct_1", HostGroup: "stripe",
			Identity: map[string]string{"charge": `"` + name + `"`},
			Scope:    ledger.Scope{Workflow: "refunds", Item: "order-1", Attempt: 1, Run: "run-1"},
			Marker:   ledger.Marker(k), VendorKey: "vk-" + name, Generation: 1,
		},
		Outcome: ledger.Outcome{
			State: state,
			Dispatches: []ledger.Dispatch{{
				ID: "d-" + name, Owner: "process-1", Run: "run-1", Generation: 1,
				PayloadDigest: hash(name), Started: stamp,
			}},
		},
		Payload: ledger.Payload{
			PayloadDigest: hash(name), SignificantDigest: hash(name + "!"),
			Policy: ledger.Policy{
				Reconciler: true, NativeKey: true, KeyFormat: ledger.KeyUUID, BlockScope: ledger.BlockWorkflow,
				OnAbsent: ledger.AbsentFail, Settle: 5 * time.Minute, Confirmations: 2, Spacing: 10 * time.Second,
			},
			Request: ledger.Request{
				Method: "POST", URL: "https://api.example.test/v1/refunds",
				Header: ledger.Header{"Content-Type": {"application/json"}, "Accept": {"a", "b"}},
			},
		},
	}
	if state == ledger.NeedsReconcile {
		m.NextTryAt = at.Add(time.Minute)
		m.UnknownSince = stamp
	}
	return m
}

// SampleRun returns a running run of workflow "refunds" and item "order-1".
func SampleRun(id string, n int) *ledger.Run {
	at := Epoch.Add(time.Duration(n) * time.Second)
	return &ledger.Run{
		ID: id, Version: 1, Workflow: "refunds", Item: "order-1", Attempt: 1, State: ledger.RunRunning,
		Mutations: ledger.MutationsMany, OnFailure: ledger.FailureAbort, BlockScope: ledger.BlockWorkflow,
		TokenSHA256: hash("token of " + id), OpenedAt: at, ExpiresAt: at.Add(time.Hour),
		Labels: map[string]string{"team": "payments"},
	}
}

// SampleItem returns an open item of workflow "refunds".
func SampleItem(item string, n int) *ledger.Item {
	at := Epoch.Add(time.Duration(n) * time.Second)
	return &ledger.Item{
		ID: "i-" + item, Version: 1, Workflow: "refunds", Item: item, State: ledger.ItemOpen, Attempt: 1,
		OpenedAt: at, UpdatedAt: at,
	}
}

// SampleBody returns the reference to content.
func SampleBody(content []byte) ledger.Body {
	sum := sha256.Sum256(content)
	return ledger.Body{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
