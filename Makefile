PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help demo test contracts slow real-data check docs demo-results table-digits table-cifar-subset \
        speed cifar audit review-study review-load screenshots protocol figures paper-smoke paper-steps \
        claims processes clean devices large fuzz survival

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/installed ## install, then find the wrong labels among digits
	$(BIN)/unswayed demo

test: $(VENV)/dev ## run the fast tests, three minutes on two cores
	$(BIN)/python -m pytest -n auto

contracts: $(VENV)/dev ## train with every option and resume every method, two minutes
	$(BIN)/python -m pytest -n auto -m slow tests/contracts

devices: $(VENV)/dev ## train every method on a pretended GPU, and compiled; minutes
	$(BIN)/python -m pytest -n auto -m "slow or not slow" tests/devices

slow: $(VENV)/dev ## run the slow tests: the demo's effect over three seeds, minutes
	$(BIN)/python -m pytest -m slow

real-data: $(VENV)/dev ## check the real CIFAR-10 and CIFAR-100 in $UNSWAYED_DATA
	$(BIN)/python -m pytest -m slow tests/data/test_real_cifar.py

check: $(VENV)/dev ## lint, types and the import direction
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

demo-results: $(VENV)/installed ## measure the numbers and the plot that the README shows
	$(BIN)/unswayed demo --compare --seeds 3 --save results train.threads=1

docs: $(VENV)/installed ## make the pages of docs/methods and the catalogue that `unswayed list` prints
	$(BIN)/python -m unswayed.report.catalogue
	$(BIN)/python -m reproduction.pages docs/methods results/digits-methods.json

table-digits: $(VENV)/installed ## train every method on noisy digits; 648 trainings, 48 minutes on two cores
	$(BIN)/unswayed bench reproduction/grids/digits-methods.toml --save results

table-cifar-subset: $(VENV)/installed ## train the paper's methods on 5,000 images of CIFAR-10 in $UNSWAYED_DATA
	$(BIN)/unswayed bench reproduction/grids/cifar10-subset-methods.toml --save results

speed: $(VENV)/bench ## measure views, steps and the growth of costs on this machine, an hour; leave it alone
	$(BIN)/python benchmarks/augment.py --save results
	$(BIN)/python benchmarks/growth.py --save results
	$(BIN)/python benchmarks/step.py --save results
	$(BIN)/python benchmarks/step.py --limits --only fast --save results
	$(BIN)/python benchmarks/step.py --options --only "width 32" --save results
	$(BIN)/python benchmarks/step.py --train 1000 --save results

large: $(VENV)/installed ## measure start, memory, checkpoints and predictions with a million images; resumable, 7 GB of disk, half an hour of one core
	$(BIN)/python benchmarks/large.py --save results

survival: $(VENV)/dev ## kill 210 trainings, fill disks, cut power, damage files; Linux, as root, half an hour of two cores
	$(BIN)/python benchmarks/survival.py --save results

cifar: $(VENV)/bench ## train noisy CIFAR-10 from $UNSWAYED_DATA within 0.2 PFLOP a run; resumable, hours
	$(BIN)/unswayed bench reproduction/grids/cifar-final.toml
	$(BIN)/python -m reproduction.cifar --save results

audit: $(VENV)/bench ## find wrong labels beside cleanlab, on data in $UNSWAYED_DATA; resumable, two hours of one core
	$(BIN)/python benchmarks/audit.py --save results

processes: $(VENV)/bench ## measure what several processes gain and what their messages cost, a quarter of an hour; leave it alone
	$(BIN)/python benchmarks/processes.py --save results

review-load: $(VENV)/dev ## measure the review page with 100,000 labels of 1,000 classes; needs Chromium, a quarter of an hour
	$(BIN)/python benchmarks/review_load.py --save results

screenshots: $(VENV)/dev ## take the pictures of the review page for the docs; needs Chromium, a minute
	$(BIN)/python benchmarks/review_screenshots.py

review-study: $(VENV)/bench ## review wrong labels beside cleanlab and train again, on data in $UNSWAYED_DATA; resumable, 108 trainings, three hours of one core
	$(BIN)/python benchmarks/review.py --save results

fuzz: $(VENV)/fuzz ## read odd files for two minutes per reader, as a stranger may have made them; under an hour of one core
	$(BIN)/python benchmarks/fuzz.py --minutes-each 2 --save results

FIGURES = representations information
CIFAR_FIGURES = gradcam memorisation gradient-share pair-precision
NOISY_CIFAR = reproduction/recipes/cifar.toml noise.name=symmetric noise.inclusive=true noise.rate=0.6
gradcam_overrides = data.size=32

protocol: $(VENV)/bench ## compare methods with equal chances (docs/protocol.md), on CIFAR-10 in $UNSWAYED_DATA; resumable, five hours of one core
	$(BIN)/unswayed bench reproduction/grids/tuning.toml --save results
	$(BIN)/python -m reproduction.tuning results
	$(BIN)/unswayed bench reproduction/grids/protocol.toml --save results
	for grid in lambda tau; do $(BIN)/unswayed bench reproduction/grids/$$grid.toml --scale cpu --save results || exit 1; done
	$(BIN)/python -m reproduction.figure sweeps --save results/figures
	$(MAKE) claims

figures: $(VENV)/bench ## train and draw the paper's figures at the size of two cores; most need CIFAR in $UNSWAYED_DATA
	for name in $(FIGURES); do $(BIN)/python -m reproduction.figure $$name --save results/figures || exit 1; done
	$(foreach name,$(if $(UNSWAYED_DATA),$(CIFAR_FIGURES)),$(BIN)/python -m reproduction.figure $(name) $(NOISY_CIFAR) $($(name)_overrides) --save results/figures &&) true

claims: $(VENV)/installed ## write docs/reproduction.md from results/
	$(BIN)/python -m reproduction.claims results docs/reproduction.md

paper-smoke: $(VENV)/dev ## a short cell of every row of every table, and every figure, two minutes
	$(BIN)/python -m pytest -n auto -m "slow or not slow" -k "not full_size" tests/reproduction/test_paper.py tests/reproduction/test_figures.py

paper-steps: $(VENV)/dev ## real steps of every full-size recipe, a quarter of an hour or so; on CIFAR with $UNSWAYED_DATA
	$(BIN)/python -m pytest -m slow -k full_size tests/reproduction/test_paper.py

clean: ## remove the virtual environment and the demo's runs
	rm -rf $(VENV) runs/demo

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one with: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "Installing into $(VENV); the first time PyTorch is fetched, which takes a few minutes."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --editable .
	@touch $@

$(VENV)/bench: $(VENV)/installed
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[bench]'
	@touch $@

$(VENV)/fuzz: $(VENV)/dev
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev,fuzz]'
	@touch $@

$(VENV)/dev: $(VENV)/installed
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev]'
	@touch $@
