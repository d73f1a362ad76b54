#!/usr/bin/env bash
# Prints the directory that has the published clients of MCP and chats, and a node for them, in
# node_modules. Versions and integrities are in the tests' package-lock.json.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PROJECT=crates/cli/tests/agents/project
tool=$PWD/.build/agent-clients
if ! cmp -s "$PROJECT/package-lock.json" "$tool/installed"; then
    echo "agent clients: installing them into .build/" >&2
    PATH=$(scripts/node.sh):$PATH
    rm -rf "$tool"
    mkdir -p "$tool"
    cp "$PROJECT/package.json" "$PROJECT/package-lock.json" "$PROJECT/.npmrc" "$tool"
    # Not `ci`: it wants the lock to name what other systems would need, and not every registry has it.
    (cd "$tool" && npm install --no-audit --no-fund --ignore-scripts --loglevel=error) >&2
    cp "$PROJECT/package-lock.json" "$tool/installed"
fi
cp "$PROJECT"/*.mjs "$tool"
printf '%s\n' "$tool"
