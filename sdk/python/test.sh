#!/usr/bin/env bash
# Builds the package, installs it into a fresh environment as a user would, and tests what was
# installed: ruff, mypy, pytest. Needs Python 3.10 or newer with venv, and the server's program in
# SANDBANK_BIN: the tests start servers of their own. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [[ -z ${SANDBANK_BIN:-} ]]; then
    echo "set SANDBANK_BIN to the sandbank program" >&2
    exit 64
fi

build=$(cd ../.. && pwd)/.build/sdk-python
rm -rf "$build"
mkdir -p "$build"

# Nothing is written into the source tree.
export PYTHONDONTWRITEBYTECODE=1
# Every download has its version from here, those of the build, too.
export PIP_CONSTRAINT=$PWD/requirements-dev.txt
export PIP_DISABLE_PIP_VERSION_CHECK=1

"${PYTHON:-python3}" -m venv "$build/venv"
bin=$build/venv/bin
"$bin/pip" --quiet wheel --no-deps --wheel-dir "$build/dist" .
"$bin/pip" --quiet install "$build"/dist/sandbank-*.whl
"$bin/pip" --quiet install --requirement requirements-dev.txt

"$bin/ruff" check --no-cache .
"$bin/ruff" format --no-cache --check .
"$bin/mypy" --cache-dir "$build/mypy" src
# The tests are checked against the installed package and so against what it says of its types.
MYPYPATH=tests "$bin/mypy" --cache-dir "$build/mypy-tests" tests
SANDBANK_TEST_INSTALLED=1 "$bin/python" -m pytest -p no:cacheprovider -rs "$@"
