#!/usr/bin/env bash
# Prints the directory that has Vite and a node for it in node_modules: what the test with a browser
# runs in a sandbox. Versions and integrities are in the test's package-lock.json.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PROJECT=crates/cli/tests/browser/project
tool=$PWD/.build/vite
if ! cmp -s "$PROJECT/package-lock.json" "$tool/installed"; then
    echo "vite: installing it into .build/" >&2
    PATH=$(scripts/node.sh):$PATH
    rm -rf "$tool"
    mkdir -p "$tool"
    cp "$PROJECT/package.json" "$PROJECT/package-lock.json" "$tool"
    # Not `ci`: it wants the lock to name what other systems would need, and not every registry has it.
    (cd "$tool" && npm install --no-audit --no-fund --ignore-scripts --loglevel=error) >&2
    cp "$PROJECT/package-lock.json" "$tool/installed"
fi
printf '%s\n' "$tool"
