#!/usr/bin/env bash
# Runs every example with a scripted model on loopback, and looks at what it did.
#
# The server is one of its own, started from the program SANDBANK_BIN; or, with SANDBANK_URL and
# SANDBANK_TOKEN, one that is there, with its tools on, which nobody else may use meanwhile. The
# published packages are installed once into .build/examples/, our own SDKs are packed and installed
# every time, as a user would. Needs curl, python3 with venv, and node 20 or newer with npm.
set -euo pipefail
cd "$(dirname "$0")"
if [ -z "${SANDBANK_BIN:-}" ] && [ -z "${SANDBANK_URL:+${SANDBANK_TOKEN:-}}" ]; then
    echo "set SANDBANK_BIN to the sandbank program, or SANDBANK_URL and SANDBANK_TOKEN to a server" >&2
    exit 2
fi
readonly EXAMPLES=$PWD SDK=$PWD/../sdk SECONDS_FOR_ONE=120
mkdir -p ../.build/examples
build=$(cd ../.build/examples && pwd)
work=$(mktemp -d --tmpdir sandbank-examples-XXXXXX)
server='' model=''
# shellcheck disable=SC2317 # the trap calls it
finish() {
    # Sandboxes outlive their server; an example that was killed may have left one.
    [ -z "$server" ] || SANDBANK_DATA_DIR=$work/data "$SANDBANK_BIN" rm --all >/dev/null 2>&1 || true
    for process in $model $server; do
        kill "$process" 2>/dev/null && wait "$process" 2>/dev/null || true
    done
    rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# until_there <what> <process> <command…>: waits for the command to succeed while the process lives.
until_there() {
    local what=$1 process=$2
    shift 2
    for _ in $(seq 300); do
        "$@" >/dev/null 2>&1 && return
        kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    echo "$what does not start:" >&2
    tail -20 "$work/$what.log" >&2
    exit 1
}

# Whether the files <file…> differ from those that were last remembered as <name>.
changed() { ! cat "${@:2}" | cmp -s - "$build/$1.installed"; }
remember() { cat "${@:2}" >"$build/$1.installed"; }

install_python() {
    if changed python requirements.txt; then
        echo "examples: installing the Python packages into .build/"
        rm -rf "$build/python"
        python3 -m venv "$build/python"
        "$build/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
        remember python requirements.txt
    fi
    # Every download has its version from there, those of the build, too.
    PIP_CONSTRAINT=$SDK/python/requirements-dev.txt "$build/python/bin/pip" wheel --quiet --disable-pip-version-check --no-deps -w "$work" "$SDK/python"
    "$build/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$work"/sandbank-*.whl
    "$build/python/bin/pip" --disable-pip-version-check check >"$work/pip.log" || { cat "$work/pip.log" >&2; exit 1; }
}

install_typescript() {
    local npm=(npm --no-audit --no-fund --no-update-notifier --loglevel=error)
    mkdir -p "$build/typescript"
    ../scripts/pack-js-sdks.sh "$work"

    cd "$build/typescript"
    if changed typescript "$EXAMPLES"/{package-lock.json,.npmrc}; then
        echo "examples: installing the npm packages into .build/"
        cp "$EXAMPLES"/{package.json,package-lock.json,.npmrc} .
        "${npm[@]}" ci
        remember typescript "$EXAMPLES"/{package-lock.json,.npmrc}
    fi
    "${npm[@]}" install --no-save --prefer-offline "$work"/sandbank-*.tgz
    rm -f ./*.ts
    cp "$EXAMPLES"/{*.ts,tsconfig.json} .
    ./node_modules/.bin/tsc -p .
    cd "$EXAMPLES"
}

start_server() {
    if [ -n "${SANDBANK_URL:-}" ]; then
        return
    fi
    printf '[app.bash_tools]\nenabled = true\n' >"$work/tools.toml"
    local serve=("$SANDBANK_BIN" serve --config "$work/tools.toml" --data-dir "$work/data")
    REMCOCHAT_ENABLE_BASH_TOOL=1 "${serve[@]}" --port 0 --pool-size 1 --storage plain >"$work/server.log" 2>&1 &
    server=$!
    # It writes where it listens into its lock file.
    until_there server "$server" sh -c 'curl -sf "$(cat "$0")/v1/health"' "$work/data/lock"
    SANDBANK_URL=$(cat "$work/data/lock")
    SANDBANK_TOKEN=$(cat "$work/data/token")
}

start_model() {
    PYTHONDONTWRITEBYTECODE=1 python3 test/model.py "$work/model.url" >"$work/model.log" 2>&1 &
    model=$!
    until_there model "$model" test -s "$work/model.url"
    model_url=$(cat "$work/model.url")
}

sandboxes() {
    local list
    list=$(curl -sSf -H "Authorization: Bearer $SANDBANK_TOKEN" "$SANDBANK_URL/v1/sandboxes") || list="unknown at $(date +%N)"
    grep -o -e '"id":"[^"]*"' -e '^unknown.*' <<<"$list" | sort || true
}

failures=0
# example <name> <command…>: runs it, then looks for `expected` in its output, asks the model's
# verdict if it is `scripted`, and looks for what it left behind.
example() {
    local name=$1 wrong='' before answer
    shift
    before=$(sandboxes)
    timeout --kill-after=5 "$SECONDS_FOR_ONE" "$@" >"$work/$name.out" 2>&1 </dev/null || wrong="it ended with $?"
    for wanted in "${expected[@]}"; do
        grep -qF -- "$wanted" "$work/$name.out" || wrong+="${wrong:+; }its output has no '$wanted'"
    done
    if [ "$scripted" = yes ]; then
        answer=$(curl -sS --fail-with-body "$model_url/verdict/${name%.*}") || wrong+="${wrong:+; }$answer"
        grep -qF -- "$answer" "$work/$name.out" || wrong+="${wrong:+; }its output is without the answer"
    fi
    [ "$(sandboxes)" = "$before" ] || wrong+="${wrong:+; }it left a sandbox behind"
    if [ -z "$wrong" ]; then
        echo "ok   $name"
    else
        echo "FAIL $name: $wrong"
        sed 's/^/     | /' "$work/$name.out"
        failures=$((failures + 1))
    fi
}

PYTHONDONTWRITEBYTECODE=1 python3 test/test_model.py 2>"$work/judge.log" || { cat "$work/judge.log" >&2; exit 1; }
install_python
install_typescript
start_server
start_model

export TMPDIR=$work SANDBANK_URL SANDBANK_TOKEN PYTHONDONTWRITEBYTECODE=1 NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
export OPENAI_BASE_URL=$model_url/v1 OPENAI_API_KEY=scripted-key
export ANTHROPIC_BASE_URL=$model_url ANTHROPIC_API_KEY=scripted-key
export OPENAI_AGENTS_DISABLE_TRACING=1 LANGSMITH_TRACING=false LANGCHAIN_TRACING_V2=false

scripted=yes expected=('sandbox sb')
for name in openai_agents langchain_agent; do
    OPENAI_MODEL=$name example "$name.py" "$build/python/bin/python" "$name.py"
done
for name in ai_sdk_bash_tool claude_tools; do
    OPENAI_MODEL=$name ANTHROPIC_MODEL=$name example "$name.ts" "$build/typescript/node_modules/.bin/tsx" "$build/typescript/$name.ts"
done
expected=('step 1' '[exit code 3]' 'command is missing')
OPENAI_MODEL=ai_sdk_tools example ai_sdk_tools.ts "$build/typescript/node_modules/.bin/tsx" "$build/typescript/ai_sdk_tools.ts"
scripted=no expected=(
    '"data":"hello from sb' '"data":"hello from /vercel/sandbox/workspace/site\n"' '"name":"index.html"'
    'says: <h1>made with curl</h1>' '{"ok":true}'
)
example curl.sh ./curl.sh

if refused=$(SANDBANK_TOKEN=wrong ./curl.sh 2>&1) || [[ $refused != *Unauthorized* ]]; then
    echo "FAIL curl.sh with a wrong token does not show the refusal: $refused"
    failures=$((failures + 1))
fi

[ "$failures" -eq 0 ] || { echo "$failures of the examples failed" >&2; exit 1; }
