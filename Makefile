# Everything needs only python3, make and git: the first target run sets the rest up below .local/.
PY  := PYTHONPATH=layers/lockstep .local/venv/bin/python
BIN := .local/venv/bin
SAM := .local/cloud/bin/sam

STARTED := $(shell date +%s)

export SAM_CLI_TELEMETRY := 0
unexport VIRTUAL_ENV

.DEFAULT_GOAL := check
.NOTPARALLEL:
.PHONY: bench bench-growth bench-life bench-picture demo up down token catalogue purge alipay-check sizes check test proof experiments model lock lock-check schema generate build clean ready setup style types template policies

# ---- run it ---------------------------------------------------------------------------------------

demo: ready ## deploy the real template to a local cloud, run the main job on it, leave it up
	@$(PY) -m infra.local.demo

up: ready ## only bring it up; TTL=60 and any parameter of the template can be set: MemberIdClaim=uid
	@$(PY) -m infra.local.stack up

down: ready ## stop what up started; the data stays
	@$(PY) -m infra.local.stack down

token: ready ## make -s token member=42, or operator=alice
	@$(PY) -m infra.local.tokens $(if $(member),--member "$(member)") $(if $(operator),--operator "$(operator)")

catalogue: ready ## make catalogue file=skus.csv: load SKUs, prices and stock, all of the file or nothing
	@$(PY) -m infra.catalogue $(if $(file),"$(file)") $(if $(actor),--actor "$(actor)") $(if $(load),--load "$(load)")

RETENTION := queue_days dead_letter_days outbox_days notice_days refusal_days seconds
purge: ready ## delete what is old and needed by nobody; make purge outbox_days=60 keeps messages longer
	@$(PY) -m infra.purge $(foreach name,$(RETENTION),$(if $($(name)),--$(name) "$($(name))"))

alipay-check: ready ## make alipay-check file=alipay.env: what is wrong with an Alipay app's settings
	@$(PY) -m infra.alipay_check $(if $(file),"$(file)")

# ---- check it -------------------------------------------------------------------------------------

check: ready style types template policies lock-check ## what has to hold before every commit
	@$(PY) -m pytest tests/unit tests/contract -q

test: setup style types template policies lock-check ## the same, and every test there is
	@$(PY) -m pytest tests -n 2 --ignore tests/e2e
	@$(PY) -m pytest tests/e2e

PROOF := sections replay seed seeds minutes
proof: ready ## crash points, interleavings, arrival orders, guards, a model, hostile input; minutes=60 for longer
	@$(PY) -m tests.proof $(foreach name,$(PROOF),$(if $($(name)),--$(name) "$$$(name)"))

SIZES := only rounds stock rows runs threads seconds
experiments: ready ## what the rules rest on, measured here beside published figures; rows=20000 for less
	@$(PY) -m infra.experiments $(foreach name,$(SIZES),$(if $($(name)),--$(name) "$($(name))"))

BENCH := only repeats seconds
bench: ready ## ours beside the seeds, other shops and the engine's limits, in one run; only=hot for a part
	@$(PY) -m infra.bench $(foreach name,$(BENCH),$(if $($(name)),--$(name) "$($(name))"))

GROWTH := rows past repeats seconds pool only keep
bench-growth: ready ## what a long past leaves of the throughput; half an hour and 25 GB of disk, rows=200000 for less
	@$(PY) -m infra.bench.growth $(foreach name,$(GROWTH),$(if $($(name)),--$(name) "$($(name))"))

LIFE := orders units clients lives
bench-life: ready ## a flash sale and whole lives of orders, through a deployed stack of its own
	@$(PY) -m infra.bench.life $(foreach name,$(LIFE),$(if $($(name)),--$(name) "$($(name))"))

bench-picture: ready ## draw the last whole run of make bench for the READMEs
	@$(PY) -m infra.bench.picture

model: ready ## a flash sale and a busy day, from the measured figures; buyers=1000000 region=cn-north-1 …
	@$(PY) -m infra.load

style: ready
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: ready
	@$(BIN)/mypy .

template: ready
	@$(BIN)/cfn-lint template.yaml infra/network.yaml infra/database.yaml
	@$(SAM) validate
	@$(SAM) validate --lint

policies: ready ## checkov on all three templates; half a minute, and only when one has changed
	@$(PY) -m infra.local.policies

sizes: ready ## size of every function and layer, and the time of its import; printed, not judged
	@$(PY) -m infra.local.sizes

# ---- keep it up to date ---------------------------------------------------------------------------

lock: ready ## compile the requirements files from pyproject.toml
	@$(PY) -m infra.local.lock

lock-check: ready
	@$(PY) -m infra.local.lock --check

generate: ready ## write what is made from the code: OpenAPI, message schemas, the READMEs' diagrams
	@for made in openapi message_schemas diagrams; do $(PY) -m infra.$$made || exit 1; done

schema: ready ## write infra/schema.sql from the migrations
	@$(PY) -m infra.local.schema

build: ready ## the functions and layers as Lambda takes them: wheels for arm64
	@PATH="$(CURDIR)/.local/cloud/bin:$$PATH" UV="$(CURDIR)/.local/tools/bin/uv" $(SAM) build

# ---- set it up, clear it away ---------------------------------------------------------------------

ready:
	@python3 infra/local/bootstrap.py

setup: ready
	@$(PY) -m infra.local.prepare --since $(STARTED)

clean: ## stop everything that was started from here, and forget it
	@test ! -x .local/venv/bin/python || $(PY) -m infra.local.stack down --all
	@rm -rf .local .aws-sam .mypy_cache .ruff_cache .pytest_cache .hypothesis
