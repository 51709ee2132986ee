# SPDX-License-Identifier: Apache-2.0
#
# Everything needs Go, make, git and a C compiler, and nothing else: generators and
# linters are built from the versions that tools/go.mod, tools/clients/go.mod and tools/lint/go.mod pin.

# Consumers see each module alone, without the workspace; so do tests and linters.
ALONE := GOWORK=off
# The modules with packages of their own. The SDK comes first, and last what takes
# a control plane.
MODULES := . examples examples/mcm examples/programs/kubectl-machines examples/samples/controllerruntime examples/samples/nodetools tools examples/e2e
# The modules that others import and that work with older libraries too.
FLOOR := . examples/mcm
# The modules that have a go.mod to keep tidy.
TIDY := $(MODULES) tools/clients tools/lint

# The packages whose tests have informers.
RACED := ./controllers/... ./programs/manager/... ./samples/quickstart ./rigs/audit ./internal/... ./rigs/cloud/...

# What takes minutes leaves the processor to others: make demo in another terminal
# is not slowed by it.
NICE := nice -n 10

FUZZTIME ?= 10s
BENCH ?= .
COUNT ?= 1
TESTFLAGS ?=
ROWS ?=
SEED ?= 1
MACHINES ?=
VERSION ?=

LINT := $(CURDIR)/bin/golangci-lint

.DEFAULT_GOAL := help
.PHONY: help release demo test floor test-e2e test-newest matrix race lint words mutants generate bench bench-e2e chaos fuzz clean controlplane

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Run the quick start against a simulated cloud.
	go run ./examples/samples/quickstart

# Those of tools read the whole repository, which the cache of test results does not see.
test: ## Run the tests of all modules, the provider template among them (minutes more the first time).
	@version=$$(sed -n 's/.*DefaultVersion = "\(.*\)"/\1/p' examples/e2e/controlplane/versions.go); \
	for cache in "$$MACHINIST_CONTROLPLANE_CACHE" "$${XDG_CACHE_HOME:-$$HOME/.cache}/machinist/controlplane" "$$HOME/Library/Caches/machinist/controlplane"; do \
		if ls "$$cache/kubernetes-$$version"-*/kube-apiserver >/dev/null 2>&1; then exit 0; fi; \
		if [ -n "$$MACHINIST_CONTROLPLANE_CACHE" ]; then break; fi; \
	done; \
	echo "== The first run also builds a control plane, which takes about ten minutes on two cores. It stays in your cache folder."
	@$(MAKE) --no-print-directory floor
	@set -e; for m in $(filter-out $(FLOOR) examples/e2e,$(MODULES)); do \
		fresh=; if [ $$m = tools ]; then fresh=-count=1; fi; \
		echo "== test $$m"; (cd $$m && $(ALONE) $(NICE) go test -timeout 30m $$fresh $(TESTFLAGS) ./...); \
	done
	@echo "== race examples"; cd examples && $(ALONE) $(NICE) go test -race -short -timeout 30m $(TESTFLAGS) $(RACED)
	@cd examples/programs/kubectl-machines && $(ALONE) $(NICE) go test -race -short -timeout 30m $(TESTFLAGS) ./...
	@echo "== 50,000 random worlds of deployments"; $(ALONE) $(NICE) go test -timeout 30m $(TESTFLAGS) ./deployment -v -run Simulation_RandomFailures \
		-first-world 40 -worlds 560 -short-worlds 2960 -least-worlds 50000
	@echo "== 20,000 schedules of orphan detection"; $(ALONE) $(NICE) go test -timeout 30m $(TESTFLAGS) ./safety -run Schedules -safety.schedules 20000
	@$(MAKE) --no-print-directory test-e2e

# The go line of a go.mod is the lowest Go, its requirements are the lowest libraries that work. The workspace has the
# newest, which tools and examples/e2e require.
floor: ## Run the tests of SDK and drop-in with the lowest Go and libraries that work, and with the newest (part of test).
	@set -e; for m in $(FLOOR); do \
		low=go$$(sed -n 's/^go //p' $$m/go.mod); \
		echo "== test $$m, $$low and $$(sed -n 's/^\tk8s.io\/client-go/client-go/p' $$m/go.mod)"; \
		(cd $$m && GOTOOLCHAIN=$$low $(ALONE) $(NICE) go test -timeout 30m $(TESTFLAGS) ./...); \
		echo "== test $$m, $$(go env GOVERSION) and client-go $$(cd $$m && go list -m -f '{{.Version}}' k8s.io/client-go)"; \
		(cd $$m && $(NICE) go test -timeout 30m $(TESTFLAGS) ./...); \
	done

# They run programs of this repository, which the cache of test results does not
# see. One package at a time: each starts a control plane.
test-e2e: controlplane ## Run the tests against a real control plane (part of test).
	@echo "== test examples/e2e"; cd examples/e2e && $(ALONE) $(NICE) go test -count=1 -p 1 -timeout 40m $(TESTFLAGS) ./...

# The first time it builds a control plane of that version, which takes about ten minutes.
test-newest: ## Run the roles, definitions and rights to drain with the newest Kubernetes (.ci/run does).
	@echo "== newest Kubernetes"; cd examples/e2e && $(ALONE) $(NICE) go run ./matrix -part

# The first time it builds two control planes, which takes about ten minutes for each.
matrix: ## Run the scenarios, the roles and the rights to drain with the oldest and the newest Kubernetes.
	cd examples/e2e && $(ALONE) $(NICE) go run ./matrix

controlplane: ## Build etcd, the Kubernetes control plane, kubectl and kubemark (once).
	@echo "== control plane"; cd examples/e2e && $(ALONE) $(NICE) go run ./up -build

race: ## Run the tests of SDK and examples with the race detector, in random order.
	$(ALONE) go test -race -shuffle=on ./...
	cd examples && $(ALONE) go test -race -short -shuffle=on ./...
	cd examples/programs/kubectl-machines && $(ALONE) go test -race -short -shuffle=on ./...

lint: $(LINT) ## Check format, linters (vet among them), go.mod, generated files and the import table.
	@echo "== gofmt"; files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
		if [ -n "$$files" ]; then echo "not formatted:"; echo "$$files"; exit 1; fi
	@set -e; for m in $(TIDY); do echo "== go mod tidy $$m"; (cd $$m && $(ALONE) go mod tidy -diff); done
	@rc=0; for m in $(MODULES); do \
		echo "== golangci-lint $$m"; (cd $$m && $(ALONE) $(LINT) run --config $(CURDIR)/.golangci.yaml ./...) || rc=1; \
	done; exit $$rc
	@echo "== words"; cd tools && $(ALONE) go run ./cmd/words
	@echo "== generated files"; cd tools && $(ALONE) go run ./cmd/generate -check
	@echo "== imports"; $(ALONE) go test -count=1 -run 'TestImports_EveryPackage_OnlyItsRow' .

words: ## Check the words of comments and documents, and the spelling of identifiers.
	@echo "== words"; cd tools && $(ALONE) go run ./cmd/words

# It takes about ten minutes on two cores.
mutants: ## Break what the rows of high severity in docs/parity.md say; their tests have to fail (ROWS="DM-02 DS-1").
	cd tools && $(ALONE) $(NICE) go run ./cmd/mutants $(ROWS)

# Make builds the linter anew when its version changes. It takes a minute or two.
$(LINT): tools/lint/go.mod tools/lint/go.sum
	@echo "== build golangci-lint (once)"
	cd tools/lint && $(ALONE) go build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

generate: ## Write deep copies, CRDs, clients and the names of examples/mcm anew.
	cd tools && $(ALONE) go run ./cmd/generate

# To compare: make bench COUNT=8 > old.txt, the same for new.txt, and then
# go -C tools tool benchstat $$PWD/old.txt $$PWD/new.txt
bench: ## Run the benchmarks of the SDK (BENCH=regexp COUNT=n).
	$(ALONE) go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

# A run takes about half an hour and 4 GB of memory on two cores.
bench-e2e: controlplane ## Measure fleets against a real control plane and its floor (MACHINES=100,1000,3000).
	cd examples/e2e && $(ALONE) go run ./bench $(if $(MACHINES),-machines $(MACHINES))

# A run takes ten to fifteen minutes and 4 GB of memory on two cores.
chaos: controlplane ## Kill the manager, API server, etcd and Nodes while machines are rolled (SEED=1).
	cd examples/e2e && $(ALONE) go run ./chaos -seed $(SEED)

fuzz: ## Run each fuzz target for a while (FUZZTIME=10s).
	@list=$$($(ALONE) go test -list '^Fuzz' ./...) || { echo "$$list"; exit 1; }; \
	echo "$$list" \
	| awk '/^Fuzz/ { names[n++] = $$1 } $$1 == "ok" { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' \
	| while read -r pkg target; do \
		echo "== fuzz $$pkg $$target"; \
		$(ALONE) go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg" || exit 1; \
	done

# It takes about ten minutes on two cores. make test rehearses the next minor version.
release: ## Rehearse a release in a clone, and do outside of it what users do with it (VERSION=v0.1.0).
	cd tools && $(ALONE) $(NICE) go test -count=1 -v -timeout 30m ./release -version='$(VERSION)'

clean: ## Remove what was built here.
	rm -rf bin
