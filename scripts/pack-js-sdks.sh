#!/usr/bin/env bash
# Packs the npm packages of sdk/ into a directory: `sandbank` and `@sandbank/ai-sdk`.
#
#   scripts/pack-js-sdks.sh <directory>
#
# They are built in a copy below .build/, beside one of the server's document: others may be building
# them where they are. Needs node 20 or newer with npm.
set -euo pipefail
[ $# = 1 ] || { echo "usage: $0 <directory>" >&2; exit 2; }
into=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
readonly TREE=$PWD/.build/js-sdks NPM=(npm --no-audit --no-fund --no-update-notifier --loglevel=error)
mkdir -p "$TREE/openapi" "$TREE/sdk"
exec 9>"$TREE/lock"
flock 9

cp openapi/sandbank.json "$TREE/openapi/"
for sdk in typescript ai-sdk; do
    copy=$TREE/sdk/$sdk
    mkdir -p "$copy"
    if ! cmp -s "sdk/$sdk/package-lock.json" "$copy/installed"; then
        echo "npm: installing what builds sdk/$sdk into .build/" >&2
        cp "sdk/$sdk"/package*.json "$copy/"
        (cd "$copy" && "${NPM[@]}" ci --ignore-scripts)
        cp "sdk/$sdk/package-lock.json" "$copy/installed"
    fi
    rm -rf "$copy/src" "$copy/dist"
    (cd "sdk/$sdk" && tar c --exclude=./node_modules --exclude=./dist --exclude=./build --exclude='./*.tgz' .) | tar x -C "$copy"
    (cd "$copy" && "${NPM[@]}" pack --pack-destination "$into" >/dev/null)
done
