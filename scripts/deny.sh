#!/usr/bin/env bash
# Checks the dependency tree against deny.toml. The tool is built once into .build/.
#
# Licences, bans and sources are judged from the lock file. Advisories need the advisory
# database; when it cannot be fetched they are skipped, and the last line says so.
set -euo pipefail
cd "$(dirname "$0")/.."

deny=$(command -v cargo-deny || true)
if [ -z "$deny" ]; then
    deny=.build/bin/cargo-deny
    if [ ! -x "$deny" ]; then
        echo "deny: building cargo-deny into .build/ (a few minutes, once)"
        if ! cargo install --quiet --locked --root .build cargo-deny; then
            echo "deny: cargo-deny could not be built; install it with 'cargo install cargo-deny'" >&2
            exit 1
        fi
    fi
fi

"$deny" check --hide-inclusion-graph bans licenses sources
checked="bans, licenses, sources"

if "$deny" fetch db >/dev/null 2>&1; then
    "$deny" check --hide-inclusion-graph advisories
    echo "deny: 4 of 4 checks passed ($checked, advisories)"
else
    echo "deny: 3 of 4 checks passed ($checked); advisories skipped: the advisory database cannot be fetched from here"
fi
