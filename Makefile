# Everything a person or a machine does with this checkout. `make help` lists it.
SHELL := bash
PYTHON ?= python3
# Of tests at a time: each may have a Spark and a Kubernetes of its own, of 3 GB together.
PROCESSES ?= 2
# What `make test-release` and `make test-upgrade` test: the folder of a release, RELEASE=build/release.
# Without it they test what they build of the checkout.
RELEASE ?=
# What `make test-changed` compares with: what is not committed, unless a commit or branch is given.
SINCE ?= HEAD
# Seconds of tests that it runs, which PROCESSES share; the rest is left to CI.
SECONDS ?= 120
# Folders with tests that need nothing; of others there is too little to be worth collecting them.
QUICK := tests/unit tests/plugins $(addprefix tests/controller/,applying commands deciding events gathering judging leases \
  local manifests store submitters)
# Steps of `make lint`, the longest first.
LINT := lint-types lint-docs lint-layers lint-style lint-format lint-crds lint-citations lint-words lint-interfaces lint-size
# What `make bench` runs.
BENCHMARKS := commands start join native asof growth models discovery enumeration publication bucket skipping xskipper jdbc page admission operator histories
# What `make test` does without on a slow machine, if this is set: tests marked long, and the whole way.
SHORT ?=
# Seconds of each test file are written here; copied to tests/timings.json they order the next run.
TIMINGS ?= build/timings.json
BIN := .venv/bin
export PYTHON RELEASE

.DEFAULT_GOAL := help

##@ Start here
.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z][a-z-]*:.*##/ {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: install java ## Weave real flights into a nested table, and query it
	@$(BIN)/python examples/flights/demo.py

.PHONY: install
install: ## Set up .venv with locked dependencies
	@.ci/environment

.PHONY: java
java: ## Check for Java 17 or newer; install it where possible
	@.ci/java

.PHONY: components
components: install java ## Check for what the tests' real components need; install it where possible
	@.ci/components

.PHONY: cluster
cluster: install ## Start a Kubernetes API server with the CRDs, until Ctrl-C
	@.ci/cluster > /dev/null
	@PYTHONPATH=tests $(BIN)/python -m support.cluster.clustercommand

.PHONY: cluster-demo
cluster-demo: install java components ## Go the whole way on a cluster with a node; KEEP=1 to stay
	@.ci/images > /dev/null
	@PYTHONPATH=tests $(BIN)/python -m support.cluster.wholedemo

##@ Checks
.PHONY: test
test: install java components ## Run every test that this machine can run
	@echo "Not run: tests/others/references, which 'make test-references' runs with a jar of Xskipper;"
	@echo "tests/others: 'make test-others' has the oldest Spark, notebooks, Airflow, Dagster, a lineage catalogue;"
	@echo "of tests/cluster: 'make test-argo-cd' builds Argo CD (five minutes at least);"
	@echo "'make test-release' installs a release, and upgrades a cluster (half an hour);"
	@echo "'make e2e-chaos' breaks a cluster, for half an hour."
	$(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder \
	  --durations 40 --durations-min 15 --timings=$(TIMINGS) $(if $(SHORT),-m "not long")
	@if [ -n "$(SHORT)" ]; then \
	  echo "Not run, as this machine is slow: tests marked long, images and the whole way: make test"; \
	elif [ "$$(id -u)" = 0 ]; then $(MAKE) --no-print-directory test-whole-way; else \
	  echo "Not run: images and the whole way; building images and running pods needs root:"; \
	  echo "sudo make test-whole-way"; fi

.PHONY: test-references
test-references: install java components ## Try our files on Xskipper itself, and its files on us
	@.ci/references > /dev/null
	$(BIN)/python -m pytest tests/others/references

.PHONY: test-others
test-others: install java components ## Run on the oldest Spark, in notebooks, by orchestrators, with a lineage catalogue
	$(BIN)/python -m pytest tests/others --durations 10

.PHONY: test-argo-cd
test-argo-cd: install java components ## Let a real Argo CD bring chart and resources
	@.ci/cluster argocd > /dev/null
	$(BIN)/python -m pytest -m argo_cd tests/cluster

.PHONY: test-whole-way
test-whole-way: install java components ## Build the images, and go the whole way in real pods
	@.ci/images > /dev/null
	@echo "Not run, but by 'make test-upgrade': the flights example in a bucket, variants of images."
	$(BIN)/python -m pytest -m "(images or whole) and not (in_a_bucket or variant)" tests/cluster --durations 10 --durations-min 15

.PHONY: test-kind
test-kind: ## Go the whole way in a cluster of kind's, with Docker, Podman or nerdctl
	@.ci/kind # before much is installed for nothing
	@$(MAKE) --no-print-directory install java
	.ci/kind $(BIN)/python -m pytest -m "whole and not in_a_bucket" tests/cluster --durations 10 --durations-min 15

.PHONY: test-release
test-release: install java components ## Use what a release has: in empty environments, and in a cluster
	$(BIN)/python -m pytest -m "release or installed" tests/cluster --durations 10
	@if [ "$$(id -u)" = 0 ]; then $(MAKE) --no-print-directory test-upgrade; else \
	  echo "Not run: the upgrade of a cluster, whose pods need root: sudo make test-upgrade"; fi

.PHONY: test-upgrade
test-upgrade: install java components ## Upgrade a cluster from the version before, and go on
	@[ -n "$(RELEASE)" ] || .ci/images > /dev/null
	@earlier="$$(.ci/earlier)" && \
	  EARLIER="$$earlier" $(BIN)/python -m pytest -m "images or whole" tests/cluster --durations 10

.PHONY: e2e-chaos
e2e-chaos: install java components ## Break a real cluster in every way, for half an hour
	@.ci/images > /dev/null
	$(BIN)/python -m pytest -m chaos tests/cluster

.PHONY: quick
quick: install ## Run the tests that need no Spark, no Java, no server and no network, in a minute
	$(BIN)/python -m pytest --quick -m "not slow and not spark" $(QUICK) -q -rfE \
	  --numprocesses $(PROCESSES) --dist loadfile

.PHONY: test-changed
test-changed: ## Run the nearest tests that changes since the commit SINCE can break, for SECONDS of work
	@chosen="$$(PYTHONPATH=tests $(PYTHON) -m support.runner.changedtests $(SINCE) $(SECONDS))" || exit 1; \
	{ read -r needs; read -r files; } <<< "$$chosen"; \
	if [ -z "$$files" ]; then echo "No test depends on what changed since $(SINCE)."; else \
	  $(MAKE) --no-print-directory install $$needs && \
	  $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile $$files; fi

.PHONY: prove
prove: install java components ## Run the long forms of the proofs, for an hour and a half
	SNAPLOOM_PROVE=1 $(BIN)/python -m pytest tests/publication/test_model.py \
	  tests/publication/test_kill.py tests/jobs/test_oracle.py tests/hostile/test_sql_fuzz.py \
	  tests/hostile/test_folders_links.py tests/hostile/test_folders_mutations.py \
	  tests/hostile/test_indexes_folders.py tests/hostile/test_regexes.py \
	  tests/skipping/proof/test_generated.py tests/skipping/proof/test_expressions.py \
	  tests/jobs/test_processes.py --timeout=7200

.PHONY: prove-operator
prove-operator: install ## Replay all scenarios of the operator with a fault at each call, for an hour and a half
	SNAPLOOM_PROVE=1 $(BIN)/python -m pytest tests/controller/faults --timeout=7200 --capture=no

.PHONY: lint
lint: install ## Check format, style, types, layers, generated files, citations and words
	@$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync=target $(LINT)

.PHONY: $(LINT)
lint-types:
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
lint-docs:
	$(BIN)/python docs/generate.py --check
lint-layers:
	$(BIN)/lint-imports
lint-style:
	$(BIN)/ruff check .
lint-format:
	$(BIN)/ruff format --check .
lint-crds:
	$(BIN)/snaploom crds --check
lint-citations:
	$(BIN)/python .ci/lint/citations.py
lint-words:
	$(BIN)/python .ci/lint/words.py
lint-interfaces:
	$(BIN)/python .ci/lint/interfaces.py
lint-size:
	$(BIN)/python .ci/lint/size.py --check

.PHONY: size
size: install ## Count files, lines and words, and record where they fell
	@$(BIN)/python .ci/lint/size.py

.PHONY: format
format: install ## Format, and correct what can be corrected
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

##@ Generated files
.PHONY: generate
generate: install ## Write CRDs, reference pages and drawings anew
	$(BIN)/snaploom crds --dir crds
	$(BIN)/python docs/generate.py

.PHONY: dashboard-recording
dashboard-recording: install ## Record what the dashboard shows, for the picture in the docs
	@.ci/cluster > /dev/null
	@.ci/prometheus > /dev/null
	SNAPLOOM_DASHBOARD_RECORDING=docs/samples/dashboard.json \
	  $(BIN)/python -m pytest tests/controller/running/test_dashboard.py

.PHONY: page-pictures
page-pictures: install ## Take the pictures of a page for the docs
	SNAPLOOM_PAGE_PICTURES=docs/images \
	  $(BIN)/python -m pytest -q tests/plugins/site/test_pages_in_a_browser.py -k picture

.PHONY: docs
docs: install ## Build the documentation as a site with search, in build/site; follow its links
	@.ci/locked $(BIN)/python .ci/locks/docs.txt
	$(BIN)/zensical build --clean --strict
	$(BIN)/python .ci/sitecheck.py build/site

.PHONY: chart
chart: install ## Check the Helm chart and pack it, in build/charts
	@helm="$$(.ci/gotool helm)" && \
	  "$$helm" lint --strict --kube-version 1.34.4 charts/snaploom && \
	  "$$helm" package --destination build/charts charts/snaploom

.PHONY: images
images: install ## Build the images of the operator and of Spark; BASE names what they are built on, ARCHITECTURE what for
	@.ci/images

.PHONY: freeze
freeze: install java ## Keep today's interfaces and files as those of this version, for later ones
	$(BIN)/python .ci/lint/interfaces.py --freeze
	PYTHONPATH=tests:docs $(BIN)/python -m support.compatibility.keptfolders

.PHONY: packages
packages: install ## Build wheels, sdists, chart and kinds, in build/packages
	@.ci/cluster > /dev/null
	@.ci/release packages

.PHONY: release
release: install components ## Build everything that a release has, in build/release; needs root
	@.ci/cluster > /dev/null
	@.ci/release

.PHONY: lock
lock: ## Write the locks of Python's packages anew; UPGRADE=1 takes the newest versions
	@.ci/lock $(if $(UPGRADE),--upgrade)

##@ Supply chain
.PHONY: audit
audit: install ## Name known vulnerabilities: ADVISORIES=file, folder or zip of OSV, BILLS=of images
	@$(BIN)/python .ci/audit.py "$(ADVISORIES)" $(BILLS)

##@ Benchmarks
.PHONY: bench
bench: ## Run every benchmark, for some hours on a quiet machine; one that fails stops no other
	@failed=; for name in $(BENCHMARKS); do $(MAKE) --no-print-directory bench-$$name || failed="$$failed $$name"; done; \
	$(BIN)/python docs/generate.py; \
	if [ -n "$$failed" ]; then echo "These failed:$$failed"; exit 1; fi

.PHONY: bench-join
bench-join: install java ## Compare weaving with hand-written PySpark
	$(BIN)/python benchmarks/join.py
	$(BIN)/python benchmarks/backfill.py

.PHONY: bench-native
bench-native: install java ## Compare weaving with Comet with hand-written PySpark and DuckDB; OPTIONS="--scale-factor 3"
	$(BIN)/python benchmarks/native.py $(OPTIONS)

.PHONY: bench-asof
bench-asof: install java ## Join as of each row's time, beside the same join by hand
	$(BIN)/python benchmarks/asof.py

.PHONY: bench-growth
bench-growth: install java ## Weave more rows, one frequent key, and very wide rows
	$(BIN)/python benchmarks/growth.py

.PHONY: bench-models
bench-models: install java ## Plan models of up to 200 sources beside the same joins by hand
	$(BIN)/python benchmarks/widemodels.py

.PHONY: bench-commands
bench-commands: install java ## Time commands that need no Spark
	$(BIN)/python benchmarks/commands.py

.PHONY: bench-start
bench-start: install java ## Time the first job of a session, and a small snapshot, from the shell
	$(BIN)/python benchmarks/start.py

.PHONY: bench-enumeration
bench-enumeration: install java components ## List the snapshots of a source of a million files
	PYTHONPATH=tests $(BIN)/python benchmarks/enumeration.py

.PHONY: bench-discovery
bench-discovery: install java components ## Start from public data sets; OPTIONS="--only SET", --no-run, --print
	PYTHONPATH=tests $(BIN)/python benchmarks/discovery.py $(OPTIONS)

.PHONY: bench-publication
bench-publication: install ## Open and commit to histories of up to 100,000 snapshots
	$(BIN)/python benchmarks/publication.py

.PHONY: bench-histories
bench-histories: install java ## Read a day of 10,000 snapshots, and its folder
	$(BIN)/python benchmarks/histories.py

.PHONY: bench-bucket
bench-bucket: install components ## Open and commit to histories in a bucket
	PYTHONPATH=tests $(BIN)/python benchmarks/bucketlog.py

.PHONY: bench-skipping
bench-skipping: install java ## Compare skipping with plain Spark, Delta and Iceberg
	$(BIN)/python benchmarks/skippingindexes.py
	$(BIN)/python benchmarks/skippingpeers.py
	PYTHONPATH=tests $(BIN)/python benchmarks/shares.py

.PHONY: bench-xskipper
bench-xskipper: install java ## Compare builds and sizes with Xskipper itself
	$(BIN)/python benchmarks/xskipper.py

.PHONY: bench-jdbc
bench-jdbc: install java components ## Compare reading a database with plain Spark
	PYTHONPATH=tests $(BIN)/python benchmarks/databases.py

.PHONY: bench-page
bench-page: install components ## Write and paint pages of up to 10,000 snapshots
	PYTHONPATH=tests $(BIN)/python benchmarks/pages.py

.PHONY: bench-admission
bench-admission: install ## Ask the webhook for reviews with 5,000 objects in view
	$(BIN)/python benchmarks/admission.py

.PHONY: bench-operator
bench-operator: install ## Let the operator look after 10,000 resources of a real API server
	@.ci/cluster > /dev/null
	PYTHONPATH=tests $(BIN)/python benchmarks/reconciler.py

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf .venv .demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
