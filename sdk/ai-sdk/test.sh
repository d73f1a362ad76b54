#!/usr/bin/env bash
# Installs the package, packed as a user would have it, beside each version of the AI SDK that it is
# for, as published, checks the tests' types with each, and runs them against a real server started
# from the program SANDBANK_BIN. Needs node 22 or newer with npm, as version 7 does. Arguments: a
# version, and a part of a test file's name.
set -euo pipefail
cd "$(dirname "$0")"
if [ -z "${SANDBANK_BIN:-}" ]; then
    echo "set SANDBANK_BIN to the sandbank program" >&2
    exit 2
fi
SANDBANK_BIN=$(realpath "$SANDBANK_BIN")
export SANDBANK_BIN
readonly HERE=$PWD NPM=(npm --no-audit --no-fund --no-update-notifier --loglevel=error)
work=$(mktemp -d --tmpdir sandbank-ai-sdk-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
../../scripts/pack-js-sdks.sh "$work"

for major in ${1:-5 6 7}; do
    project=../../.build/ai-sdk/$major
    mkdir -p "$project"
    cd "$project"
    if ! cmp -s "$HERE/majors/$major/package-lock.json" installed; then
        echo "ai-sdk: installing version $major of the AI SDK into .build/"
        cp "$HERE/majors/$major"/{package.json,package-lock.json,.npmrc} .
        "${NPM[@]}" ci
        cp package-lock.json installed
    fi
    "${NPM[@]}" install --no-save --prefer-offline "$work"/sandbank-*.tgz
    rm -rf test build
    cp -r "$HERE/test" test
    cp "$HERE/../typescript/test/server.ts" test/
    # That package has no version for 5.
    [ "$major" != 5 ] || rm test/bash_tool.test.ts
    cp "$HERE/README.md" .
    ./node_modules/.bin/tsc -p test
    echo "version $major of the AI SDK:"
    node build/main.js "${2:-}"
    cd "$HERE"
done
