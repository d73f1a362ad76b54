#!/usr/bin/env bash
# Installs Sandkasten's published Python client into .build/, once, and says where its Python is. The
# tests of the sessions' routes run it unchanged.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly WANTED=scripts/sandkasten-client.txt
tool=$PWD/.build/sandkasten-client
if ! cmp -s "$WANTED" "$tool/installed"; then
    echo "sandkasten-client: installing it into .build/" >&2
    rm -rf "$tool"
    python3 -m venv "$tool"
    "$tool/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$WANTED" >&2
    cp "$WANTED" "$tool/installed"
fi
echo "$tool/bin/python3"
