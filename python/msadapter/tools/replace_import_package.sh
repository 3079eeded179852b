#!/bin/sh
# Replaces the imports of torch and torchvision by msadapter's in a project: replace_import_package.sh [Project Path]
# The path is ./ unless given. Options of `msadapter migrate`, such as --dry-run, are passed on.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
command=$here/../bin/msadapter
[ -x "$command" ] || command=$(command -v msadapter) || {
    echo "replace_import_package.sh: the msadapter command is neither in $here/../bin nor on PATH" >&2
    exit 1
}
[ $# -gt 0 ] || set -- ./
exec "$command" migrate "$@"
