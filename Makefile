# Every target works with Go and make alone, on a machine without a C compiler.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE := $(CURDIR)/.cache
BENCHSTAT := $(CACHE)/bin/benchstat

# -race needs cgo, and cgo a C compiler that links. TESTFLAGS adds to every test. The
# timeout is there for a test that hangs, not for a machine that is slow.
RACE = $(shell tools/race)
# The race detector lets each process wait for a second before it exits, in case another thread
# has something to report, and tests start some thousand. What is reported is reported at once.
export GORACE ?= atexit_sleep_ms=10
TESTFLAGS ?=
FUZZTIME ?= 20s
COUNT ?= 6
IMAGE ?= keep-proxy

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-9s %s\n", $$1, $$2 }'

.PHONY: run
run: build ## Build, then play the demo and keep the proxy up until Ctrl-C
	./bin/keep-proxy demo

.PHONY: build
build: ## Build the static binary bin/keep-proxy
	CGO_ENABLED=0 go build -trimpath -o bin/keep-proxy ./cmd/keep-proxy

# The packages whose tests take longest are named first: what is named first begins first, so none of
# them is what all wait for at the end.
LONGEST := ./integration ./ledger/badgerstore ./cmd/keep-proxy ./proxy

# These tests start and end the program hundreds of times. Two thirds of their time would be the race
# detector's, so they run without it. What the program does is run with it by the other tests, and make proof
# runs these with it, too. Only TestHistories runs both ways: 200 histories with it, 2,000 without.
PROCESSES := TestScripts TestCrashMatrix TestKilledAtEachCrashPoint TestKilledAgainWhileReconciling TestKilledAtRandomMoments \
	TestKilledWhileAPersonHasItUndone TestKilledInTheMiddleOfAnUndo TestEndedWhileTheRingTurns TestTheConnectorPages
THESE := ^($(subst $() ,|,$(strip $(PROCESSES))))$$
HAVE_PROCESSES := ./integration ./cmd/keep-proxy ./cli/trials

# Linking takes a third less without the tables for debuggers. Vetting is left to make lint, which does it anyway.
TEST := go test -parallel 6 -vet=off -ldflags='-s -w' -timeout 30m

.PHONY: test
test: ## Run every test, with the race detector where cgo works
	TMPDIR=$$(tools/scratch) && export TMPDIR && trap 'rm -rf "$$TMPDIR"' EXIT && race="$(RACE)" && \
	$(TEST) $$race $(TESTFLAGS) $${race:+-skip '$(THESE)'} $(LONGEST) ./... && \
	if [ -n "$$race" ]; then $(TEST) $(TESTFLAGS) -run '$(THESE)|^TestHistories$$' $(HAVE_PROCESSES) ./proof/histories; fi

.PHONY: trials
trials: ## Try every bundled connector against its fake, and write docs/connectors
	TMPDIR=$$(tools/scratch) && export TMPDIR && trap 'rm -rf "$$TMPDIR"' EXIT && \
	go test -vet=off ./cli/trials -run '^TestTheConnectorPages$$' -count 1 -update

.PHONY: house
house: ## Count lines, words and methods; POST=1 counts what one POST runs, too
	go -C tools build -o $(CACHE)/bin/house ./house
	$(CACHE)/bin/house $(if $(POST),-post)

.PHONY: fixture
fixture: ## Write testdata's ledger of the present format, before it is released
	go test ./ledger/badgerstore -run TestLedgerOfEachFormat -update

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (20s) each; BODIES is the time of those that read bodies
	tools/fuzz $(FUZZTIME) $(BODIES)

# Where what the linters found out is kept; a CI may name a place that outlasts the checkout.
export GOLANGCI_LINT_CACHE ?= $(CACHE)/golangci-lint

.PHONY: lint
lint: ## Run golangci-lint of the version in tools/go.mod
	linter=$$(tools/linter) && "$$linter" run

.PHONY: fmt
fmt: ## Format the source
	linter=$$(tools/linter) && "$$linter" fmt

# KEEP_PROOF asks tests for their long forms.
.PHONY: proof
proof: ## Try to break the promise, in stages that print their part (STAGE=model for one)
	export KEEP_PROOF=1 && \
	$(if $(STAGE),,$(TEST) $(RACE) -timeout 2h -run '$(THESE)|^TestFloods$$' $(HAVE_PROCESSES) ./integration/hostile &&) \
	go run ./proof $(if $(STAGE),$(STAGE),-write)

# N histories from seed SEED, for WITHIN (30m) at most; what fails prints the line that repeats it.
N ?= 100000
SEED ?= 1
WITHIN ?= 0

.PHONY: histories
histories: ## Simulate N (100000) histories from SEED (1) against an API that counts for itself
	go test ./proof/histories -run '^TestHistories$$' -count 1 -timeout 0 -v -histories $(N) -seed $(SEED) -within $(WITHIN)

# PKG is a package whose tests are judged by mutants of its code, by a stock mutation tester.
PKG ?= ./ledger

.PHONY: mutants
mutants: ## Change the code of PKG (./ledger) line by line, and see which tests notice
	go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash $(PKG)

# SLICE is how long each side of a comparison takes its turn, ROWS one part of the table (sixteen, one, http2, isolated,
# dbos, ledger, rules, memory, large). RECORDS=1000000 adds the rows of a large ledger.
SLICE ?= 1250ms
RECORDS ?= 0
BARS = cd integration && go test -run '^TestBars$$$(if $(ROWS),/$(ROWS))' -count 1 -timeout 2h -slice $(SLICE) -records $(RECORDS)

.PHONY: bench
bench: $(if $(BENCH),$(BENCHSTAT)) ## Measure the table of bars, on a quiet machine; BENCH=NAME runs Go benchmarks COUNT (6) times
	$(if $(BENCH),go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 60m ./... | tee $(CACHE)/bench.txt,$(BARS))
	$(if $(BENCH),$(BENCHSTAT) $(CACHE)/bench.txt)

.PHONY: benchdocs
benchdocs: ## Measure the table of bars, and write it into docs/performance.md
	$(BARS) -write

# How long the clients of a soak are at work.
DURATION ?= 30m

.PHONY: soak
soak: ## Use the program in every way for DURATION (30m), and look what is left of it
	go test ./integration -run '^TestSoak$$' -count 1 -timeout 0 -v -soak $(DURATION)

# No file is for one architecture alone, so one is enough. Vetting compiles what building then links: with the
# same flags.
.PHONY: cross
cross: ## Build and vet for darwin, tests included
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go vet -trimpath ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build -trimpath -o bin/keep-proxy-darwin-arm64 ./cmd/keep-proxy

.PHONY: h2spec
h2spec: build ## Run h2spec's cases against the HTTP/2 inside a tunnel
	cd integration/h2spec && go run . ../../bin/keep-proxy

.PHONY: docs
docs: build ## Write what docs/ says of commands, states, keys, connectors, vectors and h2spec
	go test -count=1 -run '^Test(TheCommandLine|States|MutationKey|Schema)Page' ./cmd/keep-proxy ./ledger ./rules -update
	go test -count=1 -run '^TestTheConnectorPages$$' ./cli/trials -update
	DOCS=write go test -count=1 -run '^TestThePageCountsTheVectors$$' ./integration/hostile
	cd integration/h2spec && go run . ../../bin/keep-proxy ../../docs/conformance.md

.PHONY: sdk
sdk: ## Install vendors' libraries, and try them under run
	$(if $(shell command -v npm),npm ci --prefix integration/sdk/node --ignore-scripts --no-audit --no-fund,@echo "npm isn't here: libraries of npm are left out")
	SDK=$(or $(SDK),.) go test -count=1 -parallel 6 -timeout 20m ./integration/sdk

.PHONY: clients
clients: ## Install the HTTP clients people use, try them, and write docs/clients.md
	integration/clients/install
	CLIENTS=write go test -count=1 -timeout 30m -v ./integration/clients

.PHONY: image
image: ## Build the container image with docker, else from scratch with buildah
	tools/image $(IMAGE)

.PHONY: clean
clean: ## Remove what these targets made
	rm -rf bin $(CACHE)

# Linters live in a module of their own, so that the program's module holds only
# what is linked into it.
$(BENCHSTAT): tools/go.mod tools/go.sum
	go -C tools build -o $@ golang.org/x/perf/cmd/benchstat
