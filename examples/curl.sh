#!/usr/bin/env bash
# A sandbox with nothing but curl: create it, run things, move files, reach a port, delete it.
#
#     SANDBANK_TOKEN=$(sudo cat /var/lib/sandbank/token) ./curl.sh
set -euo pipefail

server=${SANDBANK_URL:-http://127.0.0.1:8080}
token=${SANDBANK_TOKEN:?set it to what is in the file "token" of the data directory}
api() { curl --silent --show-error --fail-with-body -w '\n' -H "Authorization: Bearer $token" "$@"; }
# The same for an answer that goes on to another program: a refusal is shown instead.
ask() {
    local answer
    answer=$(api "$@") || { echo "$answer" >&2; return 1; }
    echo "$answer"
}
# The text of one field of a JSON object; use jq where you have it.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

echo "# create a sandbox"
id=$(ask "$server/v1/sandboxes" -d '{"sessionKey":"curl-'$$'","ports":[3000]}' | field sandboxId)
sandbox=$server/v1/sandboxes/${id:?the server made none}
trap 'echo "# delete it"; api -X POST "$sandbox:stop"' EXIT
echo "$id"

echo "# run a command under an id of your own; its log ends when the command does"
api "$sandbox/commands" -d '{"commandId":"hello","argv":["bash","-c","echo hello from $(hostname)"]}'
api "$sandbox/commands/hello/logs"

echo "# run scripts in a shell that remembers: the second one is where the first one went"
api "$sandbox/commands?wait=true" -d '{"shell":"main","script":"mkdir site && cd site && greeting=hello"}'
api "$sandbox/commands" -d '{"commandId":"second","shell":"main","script":"echo $greeting from $(pwd)"}'
api "$sandbox/commands/second/logs"

echo "# write a file, list its directory, read it back"
echo '<h1>made with curl</h1>' | api -X PUT "$sandbox/files?path=site/index.html" --data-binary @-
api "$sandbox/files:list?path=site"
api "$sandbox/files?path=site/index.html"

echo "# serve it from inside, and reach it from outside"
api "$sandbox/commands" -d '{"commandId":"server","cwd":"site","argv":["python3","-m","http.server","3000"]}'
url=$(ask "$sandbox/ports/3000" | field url)
# Until the server inside listens, the port answers 502.
page=$(curl --silent --fail --retry 30 --retry-delay 1 "$url/index.html")
echo "$url says: $page"
