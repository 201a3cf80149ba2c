package histories

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/proxy"
	"keep-proxy/rules"
)

var (
	flagN       = flag.Int("histories", 0, "how many histories to go through; 0: a bounded number")
	flagSeed    = flag.Uint64("seed", 1, "the seed of the first history")
	flagWithout = flag.String("without", "", "numbers of parts that are left out of the history, as a failure prints them")
)

// ruleText is the API's connector. Its numbers cover the bounds that the API keeps.
const ruleText = `apiVersion: keep/v1
connector: things
version: 1
title: Things
hosts: ["` + host + `"]
reads: safe-methods
rate: {requests: 100000, per: 1s}
operations:
` + `  - name: keyed
    match: {method: POST, path: /keyed}
    native_key: {header: Idempotency-Key, format: uuid, window: 24h}
    reconcile:
      - resend: {}
` + probing + common + `
  - name: again
    match: {method: POST, path: /again}
    native_key: {header: Idempotency-Key, format: uuid, window: 24h}
    on_absent: redispatch
    max_dispatches: 3
    reconcile:
` + probing + common + `
  - name: probed
    match: {method: POST, path: /probed}
    reconcile:
` + probing + common + `
  - name: blind
    match: {method: POST, path: /blind}
    reconcile:
      - none: "nothing can be asked"
` + common

const probing = `      - probe:
          get: /things
          query: {reference: {cel: json.reference}}
          pages:
            more: response.json.more
            set: {cursor: {cel: response.json.next}}
            max: 10
          candidates: response.json.items
          ours: found.keep_id == mutation.marker
          tie: marker
          id: found.id
          absence_is_proof: true
          result: {status: 201, header: {content-type: application/json}, json: {cel: found}}
`

const common = `    effect: mutation
    describe: "Thing {json.reference}"
    identity: {reference: json.reference}
    marker: {json: keep_id}
    manual_check: "Is there a thing with reference {json.reference}?"
    settle: 60s
    absent_confirmations: 2
    absent_spacing: 5s
    bounds: {commit: 40s, lag: 5s, source: "the simulated API"}
`

func newHouse(t *testing.T) *house {
	t.Helper()
	set, findings := rules.Load([]rules.File{{Name: "things.yaml", Data: []byte(ruleText)}}, nil, rules.Defaults{})
	if set == nil {
		t.Fatalf("the rules don't load: %v", findings)
	}
	ca, err := proxy.LoadCA(t.TempDir()+"/ca.pem", t.TempDir()+"/ca.key", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{set: set, ca: ca}
	h.quiet, _ = pipe(t)
	var end *os.File
	h.ended, end = pipe(t)
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

// pipe is one that is closed with the test.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// bounded is how many histories go through in every test run.
func bounded() int {
	switch {
	case raceEnabled, testing.Short():
		return 200
	}
	return 2000
}

func TestHistories(t *testing.T) {
	shared := newHouse(t)
	without := leftOut(t)
	n := *flagN
	if n == 0 {
		n = bounded()
	}
	if len(without) > 0 {
		n = 1
	}
	var sum outcome
	sum.ends = map[ledger.State]int{}
	for i := range n {
		seed := *flagSeed + uint64(i)
		out := simulate(t, shared, newPlan(seed, without))
		if len(out.wrongs) > 0 {
			if len(without) == 0 {
				without, out = shrink(t, shared, seed, out)
			}
			t.Fatalf("history %d of %d: %s\nrepeat: go test ./proof/histories -run TestHistories -seed=%d -without=%s",
				i+1, n, strings.Join(out.wrongs, "\n  and "), seed, numbers(without))
		}
		sum.sendings += out.sendings
		sum.reads += out.reads
		sum.crashes += out.crashes
		sum.decisions += out.decisions
		for state, k := range out.ends {
			sum.ends[state] += k
		}
	}
	t.Logf("%d histories from seed %d: %d sendings, %d reads, %d crashes, %d decisions; %v", n, *flagSeed, sum.sendings, sum.reads,
		sum.crashes, sum.decisions, sum.ends)
}

// shrink leaves out whatever the failure doesn't need: runs, events, and what the API did.
func shrink(t *testing.T, shared *house, seed uint64, failed outcome) ([]int, outcome) {
	t.Helper()
	p := newPlan(seed, nil)
	var parts []int
	for _, e := range p.events {
		parts = append(parts, e.number)
	}
	for _, item := range p.items {
		for _, r := range slices.Backward(item.runs) {
			parts = append(parts, r.number)
		}
		for i := range 3 {
			for n := range 6 {
				parts = append(parts, fateNumber(fmt.Sprintf("%s-%d", item.name, i), n+1))
			}
		}
	}
	for n := range 10 {
		parts = append(parts, fateNumber("read", n+1))
	}
	var without []int
	for _, part := range parts {
		try := append(slices.Clone(without), part)
		if out := simulate(t, shared, newPlan(seed, try)); len(out.wrongs) > 0 {
			without, failed = try, out
		}
	}
	return without, failed
}

func leftOut(t *testing.T) []int {
	t.Helper()
	var out []int
	for text := range strings.SplitSeq(*flagWithout, ",") {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("-without: %v", err)
		}
		out = append(out, n)
	}
	return out
}

func numbers(all []int) string {
	var out []string
	for _, n := range all {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ",")
}
