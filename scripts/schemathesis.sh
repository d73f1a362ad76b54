#!/usr/bin/env bash
# Runs Schemathesis over /openapi.json of a daemon of its own, as root: no answer may be a 5xx,
# and every answer must be as documented. The tool is installed once into .build/.
#
# Two passes: the first makes up everything and follows links between operations; the second has
# a sandbox, a command and files that exist, and leaves out what would end them. SCHEMATHESIS_SECONDS
# bounds each (default 80). The event stream is left out: it never ends.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly WANTED=scripts/schemathesis.txt
seconds=${SCHEMATHESIS_SECONDS:-80}
tool=$PWD/.build/schemathesis
if ! cmp -s "$WANTED" "$tool/installed"; then
    echo "schemathesis: installing it into .build/"
    rm -rf "$tool"
    python3 -m venv "$tool"
    "$tool/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$WANTED"
    cp "$WANTED" "$tool/installed"
fi
cargo build --locked --package sandbank-cli
sandbank=$PWD/target/debug/sandbank

data=$(mktemp -d --tmpdir sandbank-schemathesis-XXXXXX)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
export SANDBANK_DATA_DIR=$data SANDBANK_PORT=$port SANDBANK_LOOPBACK_OPEN=false
export SANDBANK_URL=$url SANDBANK_MAX_SANDBOXES=40 SANDBANK_STORAGE_POOL_MB=2048
export SANDBANK_MAX_EXEC_TIMEOUT_MS=3000
"$sandbank" serve >"$data/daemon.log" 2>&1 &
daemon=$!
finish() {
    status=$?
    "$sandbank" rm --all >/dev/null 2>&1 || true
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
    if [ "$status" -ne 0 ]; then
        tail -20 "$data/daemon.log" >&2
    fi
    if mountpoint -q "$data/pool"; then
        umount "$data/pool"
    fi
    rm -rf --one-file-system "$data"
    exit "$status"
}
trap finish EXIT
for _ in $(seq 150); do
    curl -sf "$url/v1/health" >/dev/null && break
    sleep 0.2
done
token=$(cat "$data/token")

call() {
    curl -sf -H "Authorization: Bearer $token" -d "$2" "$url$1"
}

# Pulling would ask whatever registries come out of a generator.
check() {
    "$tool/bin/schemathesis" --config-file "$data/schemathesis.toml" run "$url/openapi.json" \
        --header "Authorization: Bearer $token" --exclude-path /v1/events --exclude-path /v1/images:pull --request-timeout 20 \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance,use_after_free,ignored_auth \
        --max-time "$seconds" --continue-on-failure --warnings off "$@"
}

cd "$data"
# A command that takes too long is 504 by contract.
late='[[operations]]
include-name = "POST /v1/sessions/{id}/exec"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 504]'
echo "$late" >schemathesis.toml
check --phases coverage,fuzzing,stateful --max-examples 20
"$sandbank" rm --all >/dev/null

id=$(call /v1/sandboxes '{"sessionKey":"known","ports":[3000],"network":{"mode":"none"}}' |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["sandboxId"])')
call "/v1/sandboxes/$id/commands" '{"argv":["sh","-c","echo out; echo err >&2"],"commandId":"known"}' >/dev/null
call "/v1/sandboxes/$id/files:write" \
    '{"files":[{"path":"/workspace/a","contentBase64":"aGk="},{"path":"/workspace/d/b","contentBase64":"aGk="}]}' >/dev/null
session=$(call /v1/sessions '{}' | python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])')
call "/v1/sessions/$session/fs/write" '{"path":"d/b","text":"hi"}' >/dev/null
cat >schemathesis.toml <<TOML
[dictionaries]
sandbox.values = ["$id", "$session"]
command.values = ["known"]
port.values = [3000, 3001]
path.values = ["a", "/workspace/d/b", "d", ".", "none"]
[parameters]
"path.id" = { dictionary = "sandbox", probability = 0.9 }
"path.commandId" = { dictionary = "command", probability = 0.8 }
"path.port" = { dictionary = "port", probability = 0.7 }
"query.path" = { dictionary = "path", probability = 0.7 }
$late
TOML
check --phases coverage,fuzzing --max-examples 30 --exclude-operation-id sandboxes_delete \
    --exclude-operation-id sessions_delete --exclude-operation-id sandboxes_stop --exclude-operation-id sandboxes_pause
echo "schemathesis: both passes found nothing"
