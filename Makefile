# What a developer or a user does with this project. `make` lists the targets.
SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS   += --no-print-directory

OUT         := _output
BIN         := $(OUT)/bin
RUN         := _run

VERSION     ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo v0.0.0-master)
COMMIT      := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
TREE_STATE  := $(shell test -z "$$(git status --porcelain 2>/dev/null)" && echo clean || echo dirty)
BUILD_DATE  := $(shell git log -1 --format=%cd --date=format:%Y-%m-%dT%H:%M:%SZ 2>/dev/null || echo 1970-01-01T00:00:00Z)

# The Kubernetes components report the version of the module that they were built from.
KUBE_VERSION = $(shell go list -m -f '{{.Version}}' k8s.io/kubernetes)
KUBE_PKG    := k8s.io/component-base/version
OUR_PKG     := github.com/karmadactl/karmadactl/pkg/util/version
LDFLAGS      = -s -w \
	-X $(OUR_PKG).gitVersion=$(VERSION) -X $(OUR_PKG).gitCommit=$(COMMIT) \
	-X $(OUR_PKG).gitTreeState=$(TREE_STATE) -X $(OUR_PKG).buildDate=$(BUILD_DATE) \
	-X $(KUBE_PKG).gitVersion=$(KUBE_VERSION) -X $(KUBE_PKG).gitCommit=$(COMMIT) \
	-X $(KUBE_PKG).gitTreeState=$(TREE_STATE) -X $(KUBE_PKG).buildDate=$(BUILD_DATE)

# The same build settings as `go test` and `go vet`, so that all three share one build cache.
GO_BUILD     = go build -ldflags '$(LDFLAGS)'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build karmadactl and karmada into _output/bin
	@mkdir -p $(BIN)
	$(GO_BUILD) -o $(BIN)/karmadactl ./cmd/karmadactl
	$(GO_BUILD) -o $(BIN)/karmada ./cmd/karmada
	@ln -sf karmadactl $(BIN)/kubectl-karmada

.PHONY: generate
generate: ## make the generated files anew
	tools/generate.sh

.PHONY: lint
lint: ## check format, generated files, vet and layers
	@bad=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); test -z "$$bad" || { echo "not gofmt-ed: $$bad"; exit 1; }
	tools/generate.sh --check
	go vet ./...
	go test .

.PHONY: unit
unit: ## run the tests of single packages
	go test $$(go list ./... | grep -v /test/)

.PHONY: e2e
e2e: build ## run the tests that start real processes
	go test -count=1 -p 1 -timeout 40m ./test/e2e/... ./test/chaos/... ./test/aggregated/... ./test/fleet/... ./test/propagation/... ./test/admission/... ./test/scheduling/... ./test/cli/...

.PHONY: test
test: build lint unit e2e ## run every check and every test

.PHONY: bench
bench: build ## measure: a small form of every scenario
	go run ./test/bench

.PHONY: krew
krew: ## build the archives and the manifest of a release for krew, in _output/krew
	tools/krew.sh build '$(VERSION)' $(OUT)/krew '$(LDFLAGS)'

.PHONY: up
up: build ## start a control plane on this host, in _run, and show that it works
	test/up.sh $(BIN) $(RUN)

.PHONY: down
down: ## stop what `make up` started, and remove it with its data
	test/down.sh $(BIN) $(RUN)

.PHONY: clean
clean: down ## remove what was built, too
	rm -rf $(OUT) $(RUN)
