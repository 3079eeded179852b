#!/usr/bin/env bash
# Builds into build/ and installs the package into build/root/site: PYTHONPATH=build/root/site .venv/bin/python.
# In CI (CI is set) warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
export PATH="$top/.venv/bin:$PATH"
if [ -z "${CC:-}" ] && command -v ccache >/dev/null; then
    export CC="ccache gcc" CCACHE_BASEDIR="$top" CCACHE_NOHASHDIR=1
fi
site=$top/build/root/site
options=(--prefix "$top/build/root" "-Dpython.purelibdir=$site" "-Dpython.platlibdir=$site")
[ -z "${CI:-}" ] || options+=(-Dwerror_all=true)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
    "$@" >"$log" 2>&1 || { tail -n 60 "$log" >&2; echo "build: failed: $*" >&2; exit 1; }
}
if ! [ -f build/build.ninja ]; then
    rm -rf build
    quietly meson setup build "${options[@]}"
fi
quietly ninja -C build
rm -rf "$site" # so that no file stays that the sources have lost
quietly meson install -C build --no-rebuild --quiet
