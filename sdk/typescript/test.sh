#!/bin/sh
# Builds the package, installs it into an empty project as a user would, and runs the tests there
# against a real server: the one of SANDBANK_URL and SANDBANK_TOKEN, or one started from the
# program SANDBANK_BIN. Needs Node 20 or newer with npm. An argument chooses tests by file name.
set -eu
cd "$(dirname "$0")"
if [ -z "${SANDBANK_URL:-}${SANDBANK_BIN:-}" ]; then
  echo "set SANDBANK_BIN to the sandbank program, or SANDBANK_URL and SANDBANK_TOKEN to a server" >&2
  exit 2
fi

npm ci --no-audit --no-fund --loglevel=error
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
trap 'exit 130' INT TERM
npm pack --loglevel=error --pack-destination "$project" >/dev/null
npm run --silent build:test
echo '{ "name": "an-empty-project", "private": true, "type": "module" }' >"$project/package.json"
cp -r build/test README.md "$project/"
cp ../README.md "$project/TABLE.md"
cp -r runtimes "$project/runtimes"
ln -s "$PWD/node_modules/typescript" "$project/typescript"
(cd "$project" && npm install --no-audit --no-fund --loglevel=error --prefer-offline ./sandbank-*.tgz)
(cd "$project" && node test/main.js "$@")
