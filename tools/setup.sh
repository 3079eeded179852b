#!/usr/bin/env bash
# Gets a machine ready to build and test: system packages where apt and the right to use it are there, a virtual
# environment in .venv, and what the build and the tests need in it. Does nothing where everything is there already.
#
# PYTHON chooses the interpreter (default: /usr/bin/python3, then python3); .venv sees its packages, so that Debian's
# torch, where it is installed, serves the tests as the reference.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

missing_packages() {
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
    done
}

# The first list is needed. The second is the reference of the tests and a faster second build.
if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    needed=$(missing_packages gcc libc6-dev libdnnl-dev liblapack-dev zlib1g-dev pkg-config python3-dev python3-venv)
    wanted=$(missing_packages python3-torch python3-torchvision ccache)
    if [ -n "$needed$wanted" ]; then
        if [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; then
            export DEBIAN_FRONTEND=noninteractive
            log=$(mktemp)
            as_root apt-get update -q >"$log" 2>&1 || echo "setup: apt-get update failed, going on with what is there" >&2
            for list in "$needed" "$wanted"; do
                [ -n "$list" ] || continue
                echo "setup: installing" $list
                # shellcheck disable=SC2086  # a list of names
                as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $list >"$log" 2>&1 ||
                    { tail -n 5 "$log" >&2; echo "setup: could not install" $list >&2; }
            done
            rm -f "$log"
        else
            echo "setup: not root and no sudo; ask for: apt-get install" $needed $wanted >&2
        fi
    fi
fi

python=${PYTHON:-}
if [ -z "$python" ]; then
    python=python3
    if [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        python=/usr/bin/python3
    fi
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "setup: $python is older than 3.10; name a newer one: make PYTHON=/path/to/python3" >&2
    exit 1
}
if ! [ -x .venv/bin/python ] || ! .venv/bin/python -c '' 2>/dev/null; then
    echo "setup: making .venv from $python"
    rm -rf .venv
    "$python" -m venv --system-site-packages .venv
fi

# Debian's torch was built for numpy 1: with numpy 2 beside it, it cannot exchange arrays, and is no reference any more.
limits=()
if .venv/bin/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'; then
    limits=('numpy<2' 'scikit-learn<1.6')
fi

# name=module, checked by importing: pip is asked only for what is missing.
absent=()
for pair in meson=mesonbuild ninja=ninja meson-python=mesonpy pyyaml=yaml pytest=pytest numpy=numpy pillow=PIL scikit-learn=sklearn; do
    .venv/bin/python -c "import ${pair#*=}" 2>/dev/null || absent+=("${pair%%=*}")
done
if [ ${#absent[@]} -gt 0 ]; then
    echo "setup: pip install ${absent[*]}"
    .venv/bin/python -m pip install -q --disable-pip-version-check --prefer-binary "${absent[@]}" ${limits[@]+"${limits[@]}"}
fi
