# Every command installs what it needs, from lock files, into .venv and .local. See README.md.

PYTHON ?= python3
# The processes of `make test`; tests/workers.py says what each of them runs.
WORKERS ?= 2
LOCAL = $(PYTHON) -m local
# What `cdk` finds first: this repository's Python, Node and CDK CLI.
export NODE_USE_SYSTEM_CA = 1
# Byte code is kept, also where the environment says not to: every function of the local stack is a process, and each
# would compile botocore again.
unexport PYTHONDONTWRITEBYTECODE
IN_ENV = PATH="$(CURDIR)/.venv/bin:$(CURDIR)/.local/cdk/node_modules/.bin:$(CURDIR)/.local/uv/bin:$$PATH"
# The options of infra/options.py, which a test compares: those of AWS and of `make up`, those that `make up` takes as
# arguments of its own, and those of AWS alone. docs/configuration.md describes them.
OPTIONS = stack cell companion_tools auth issuer audience scopes scope_prefix token_typ principal quota_per origins hosts max_tasks max_creations max_polls max_subscriptions max_new_subscriptions max_calls max_workers max_body max_arguments max_depth max_values max_ttl_days rate burst log_messages
UP_OPTIONS = tools streaming
AWS_OPTIONS = stage url domain hosted_zone certificate priority access_log data encryption earlier_keys reserved rollout provisioned snapstart alarms budget dashboard tool_metrics tracing execution_log
# Those of `make cost`, which are the fields of operations/costs/load.py, and a region of its table of prices.
COST_OPTIONS = region tasks polls reports transitions writes auth encryption alarms dashboard log_messages worker_ms worker_mb api_ms background_ms row_kb response_kb ttl_days
context = $(foreach key,$(1),$(if $($(key)),-c '$(key)=$($(key))'))
arguments = $(foreach key,$(1),$(if $($(key)),--$(key) '$($(key))'))
CONTEXT = $(call context,$(OPTIONS) $(UP_OPTIONS) $(AWS_OPTIONS))
# The stack that a command is about, where it is not the one of server.toml.
STACK = $(if $(stack),--stack '$(stack)',$(if $(stage),--stack "$$($(IN_ENV) python -m infra.stages '$(stage)')"))

.PHONY: help demo up down connect doctor check toolchecks test conformance bench soak hostile chaos model mutations audit lint synth bootstrap diff preflight deploy verify cost tasks logs dashboard replay replay-task replay-check restore destroy drain add lock clean python
.DEFAULT_GOAL := help

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: python ## Everything at once: emulator, deploy, a client that drives it, and the end
	@$(LOCAL) demo $(if $(ASK),--ask)

# In capitals, too: `make up` took these so before it took all options.
up: tools = $(TOOLS)
up: port = $(PORT)
up: streaming = $(STREAMING)
up: auth = $(AUTH)
up: issuer = $(ISSUER)
up: audience = $(AUDIENCE)
up: scopes = $(SCOPES)
up: python ## The stack on an emulator, left running [port=n] [option=value of docs/configuration.md]
	@$(LOCAL) up $(call arguments,$(UP_OPTIONS) port) $(call context,$(OPTIONS))

down: python ## Stop what `make up` left running
	@$(LOCAL) down

connect: python ## How Claude Code, VS Code, Cursor and others get the running or deployed server [url=...]
	@$(LOCAL) connect $(if $(url),--url '$(url)') $(if $(stack),--stack '$(stack)')

doctor: python ## Whether clients find out where to log in, and where each would stop [url=... | stack=... | stage=...]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.doctor $(if $(url),--url '$(url)') $(STACK)

check: python ## Before each commit, in a minute: format, lint, types, the tests of your tools, synthesis
	@$(LOCAL) prepare --tests
	@$(MAKE) --no-print-directory --keep-going -j2 lint toolchecks synth auth=$(or $(auth),none)

toolchecks: python
	@$(IN_ENV) python -m pytest tests/tools -q -m 'not emulator' || [ $$? = 5 ] # 5: there are none

test: python ## All tests: unit, infrastructure, integration on the emulator, conformance
	@$(LOCAL) prepare --tests
	@$(IN_ENV) python -m pytest -n $(WORKERS) --no-loadscope-reorder $(ARGS)

conformance: python ## The official conformance suite against tests/conformance/tools
	@$(LOCAL) prepare --tests
	@$(IN_ENV) python -m pytest tests/conformance -v $(ARGS)

bench: python ## Latencies on the emulator: tasks/get, tools/call, push, cold start
	@$(LOCAL) prepare --tests
	@$(IN_ENV) python -m tests.campaigns.bench

soak: python ## 50 subscriptions with 10 tasks each for two minutes: sent, delivered, missed, duplicates
	@$(LOCAL) prepare --tests
	@$(IN_ENV) python -m tests.campaigns.soak $(ARGS)

hostile: python ## 10,000 spoiled requests over HTTP: no 5xx, no leak, no row and no execution too many [ARGS="--seed N"]
	@$(LOCAL) prepare --tests
	@$(IN_ENV) python -m tests.campaigns.hostile $(ARGS)

chaos: python ## 500 tasks while calls to AWS fail and functions are killed: lost, duplicated, time to settle [ARGS="--seed N"]
	@$(LOCAL) prepare --tests
	@$(IN_ENV) python -m tests.campaigns.chaos $(ARGS)

model: python ## The model check, nightly: random histories of tasks, calls and durable tools against what is promised [RUNS=5000] [SEED=n]
	@$(LOCAL) prepare --tests
	@$(IN_ENV) MODEL_RUNS=$(or $(RUNS),5000) python -m pytest tests/campaigns/model -q --timeout=0 $(if $(SEED),--hypothesis-seed=$(SEED))

mutations: python ## Remove each condition of a write, one at a time: its test has to fail
	@$(LOCAL) prepare --tests
	@$(IN_ENV) python -m tests.campaigns.conditions

audit: python ## Ask the advisory services about every locked package, and renew tests/audit/advisories.json
	@$(LOCAL) prepare --tests
	@$(IN_ENV) python -m tests.audit.live

lint: python ## Format, lint and types
	@$(LOCAL) prepare --tests
	@$(IN_ENV) ruff format --check . && $(IN_ENV) ruff check . && $(IN_ENV) mypy

synth: python ## The CloudFormation template for AWS, checked by cdk-nag and cfn-lint [options as deploy]
	@$(LOCAL) prepare --tests
	@$(IN_ENV) cdk synth --quiet $(CONTEXT) && $(IN_ENV) cfn-lint cdk.out/*.template.json && \
		echo "cdk.out holds the template; cdk-nag and cfn-lint found nothing"

bootstrap: python ## Prepare the account and region of your credentials for the CDK, once
	@$(LOCAL) prepare
	@$(IN_ENV) cdk bootstrap

diff: python ## What a deployment would change in the account of your credentials [options as deploy]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m infra.byte_code
	@$(IN_ENV) cdk diff $(CONTEXT)

preflight: python ## What `make deploy` does first: synthesize, and see whether the account can take it [change='...']
	@$(LOCAL) prepare
	@$(IN_ENV) python -m infra.byte_code
	@$(IN_ENV) cdk synth --quiet $(CONTEXT)
	@$(IN_ENV) python -m operations.preflight$(if $(change), --change '$(change)')$(if $(remove), --remove '$(remove)')

deploy: preflight ## Deploy to the account of your credentials: auth=oauth|iam|none, or stage=NAME [option=value of docs/configuration.md] [approval=never] [remove='tools to end first']
	@$(if $(remove),$(IN_ENV) python -m operations.drain --tools '$(remove)' $(STACK))
	@$(IN_ENV) cdk deploy --app cdk.out --require-approval $(or $(approval),broadening)

verify: python ## Try the deployed server and compare its account with the template; prints a report [stack=] [url=] [profile=local] [slow=yes] [ring=yes]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.verify $(STACK) $(if $(profile),--profile $(profile)) $(call arguments,url auth task question answer large fails slow ring)

tasks: python ## The tasks that have not ended, or one: [TASK=id] [tool=NAME] [stack=] [profile=local]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.live_tasks $(if $(TASK),--task '$(TASK)') $(if $(tool),--tool '$(tool)') $(STACK) $(if $(profile),--profile $(profile))

logs: python ## What the functions logged: [TASK=id] [since=15m] [follow=1] [stack=] [profile=local]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.read_logs $(if $(TASK),--task '$(TASK)') $(if $(since),--since '$(since)') $(if $(follow),--follow) $(STACK) $(if $(profile),--profile $(profile))

dashboard: python ## The dashboard's figures as a page in the browser, of the stack of `make up` [profile=aws] [stack=] [minutes=60] [port=]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.dashboard $(STACK) $(if $(profile),--profile $(profile)) $(call arguments,minutes port)

cost: python ## What a month costs under a load [tasks=1000000 polls=10 auth=iam encryption=aws ...: operations/costs/load.py]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.costs $(foreach key,$(COST_OPTIONS),$(if $($(key)),'$(key)=$($(key))'))

replay-task: python ## Run a tool here against a task's journal: TASK=id [save=file] [stack=] [profile=local], or file=
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.replay_tasks $(if $(file),--file $(file),--task $(or $(TASK),$(error TASK=id)) $(if $(save),--save $(save))) $(STACK) $(if $(profile),--profile $(profile))

replay-check: python ## Which live tasks this code would break, once deployed [stack=] [profile=local]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.replay_tasks $(STACK) $(if $(profile),--profile $(profile))

restore: python ## Copy the rows of a restored table back: table=Tasks|Callers|Journal source=NAME [rows=all] [stack=] [profile=local]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.restore_rows --table '$(or $(table),$(error table=Tasks|Callers|Journal))' --source '$(or $(source),$(error source=NAME, of the restored table))' $(call arguments,rows profile) $(STACK)

replay: python ## Hand on again what is in the dead-letter queues [stack=] [profile=local: of `make up`]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.replay $(STACK) $(if $(profile),--profile $(profile))

# Only the name counts. The CDK synthesizes the stack all the same; the local one needs no other option.
destroy: python ## End all tasks, and remove the stack from the account of your credentials [stack=] [confirm=STACK] [rules=remove]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.destroy $(STACK) $(call arguments,confirm rules seconds)
	@$(IN_ENV) cdk destroy --force -c profile=local $(call context,stage stack)

drain: python ## End the running tasks of a tool that was removed, or is about to be: tool=NAME [stack=] [seconds=600] [profile=local]
	@$(LOCAL) prepare
	@$(IN_ENV) python -m operations.drain --tools '$(or $(tool),$(error tool=NAME))' $(STACK) $(call arguments,seconds profile)

add: python ## Add a package to what the functions need: package=pandas [group=tests]
	@test -n '$(package)' || { echo "error: make add package=NAME" >&2; exit 1; }
	@$(PYTHON) -m local.dependencies add '$(package)' $(if $(group),--group '$(group)')

lock: python ## Renew uv.lock: the newest versions that pyproject.toml allows
	@$(PYTHON) -m local.dependencies lock

clean: down ## Remove everything that the commands made
	@rm -rf .venv .local cdk.out .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "error: $(PYTHON) is missing or older than 3.11; try make PYTHON=python3.13 ..." >&2; exit 1; }
