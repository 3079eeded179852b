# Two commands for a fresh machine: `make demo` trains the manual's LeNet, `make test` runs every test.
# Both install what is missing first (tools/setup.sh) and build (tools/build.sh); Meson does the building.

export PYTHONPATH := $(CURDIR)/build/root/site

.PHONY: all setup build test demo bench supported clean

all: build

setup:
	@tools/setup.sh

build: setup
	@tools/build.sh

test: build
	@.venv/bin/python tests/run.py

demo: build
	@.venv/bin/python examples/python/train_lenet.py

bench: build
	@.venv/bin/python bench/run.py

# The list of supported names, from the extension itself.
supported: build
	@.venv/bin/python tools/supported.py docs/supported.md

clean:
	rm -rf build build-asan .venv
