# Chaperone. `make` alone lists what there is.

MODULE  := github.com/chaperone-agents/chaperone
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X $(MODULE)/internal/base/version.value=$(VERSION)
GO      ?= go
DEMO    := $(GO) run ./internal/testkit/demo --bin bin --out out/demo

# The race detector needs a C compiler; without one the tests run without it.
RACE    ?= $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo -race)

.PHONY: help build check lint generate test demo demo-practice demo-mediawiki bench bench-observe bench-act bench-classifier clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the programs into bin/
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

check: ## formatting, vet, linter and architecture rules: seconds
	@bad=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$bad" || { echo "gofmt is needed for:"; echo "$$bad"; exit 1; }
	$(GO) vet ./...
	@$(MAKE) --no-print-directory lint
	$(GO) test ./internal/archtest

lint: bin/tools/staticcheck
	bin/tools/staticcheck ./...

generate: ## write the code that api/openapi.yaml describes
	$(GO) generate ./...

bin/tools/staticcheck: tools/go.mod tools/go.sum
	@mkdir -p bin/tools
	cd tools && $(GO) build -o ../bin/tools/staticcheck honnef.co/go/tools/cmd/staticcheck

test: build ## every test; installs what is missing
	@scripts/need browser npm mediawiki roundcube
	$(GO) test $(RACE) -timeout 20m ./...

demo: build ## the main job on the practice site and on MediaWiki; leaves out/demo/index.html
	@scripts/need browser mediawiki
	$(DEMO) --practice --mediawiki

demo-practice: build ## the main job on the practice site only
	@scripts/need browser
	$(DEMO) --practice

demo-mediawiki: build ## the main job on MediaWiki only
	@scripts/need browser mediawiki
	$(DEMO) --mediawiki

bench: build ## what a call costs, as ratios within one run
	@scripts/need browser
	$(GO) test -run '^$$' -bench . -benchtime 1s -timeout 20m ./...

bench-observe: build ## what seeing a page costs, beside @playwright/mcp in the same run
	@scripts/need browser npm
	$(GO) run ./internal/testkit/seebench --bin bin

bench-act: build ## what acting on a page costs, beside @playwright/mcp in the same run, and where our time goes
	@scripts/need browser npm
	$(GO) run ./internal/testkit/seebench --bin bin --acts
	$(GO) test -run '^$$' -bench BenchmarkAct -benchtime 9x ./internal/browser/driver

bench-classifier: ## what the consequence classifier gets right on translated labels, per language, and what it costs
	$(GO) run ./internal/testkit/classbench
	$(GO) test -run '^$$' -bench . -benchtime 1s ./internal/rules/consequence

clean: ## remove what the targets above made
	rm -rf bin out
