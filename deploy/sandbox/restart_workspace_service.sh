#!/usr/bin/env bash
# Starts the workspace service, or starts it again, and waits until it serves. The runner and its
# commands go on meanwhile. Ends with 0 only when the service is healthy.
set -euo pipefail
# shellcheck source=deploy/sandbox/settings.sh
. "$(dirname "$0")/settings.sh"

readonly patience=20

[ -x "$program" ] || die "$program is not there: run deploy_workspace_service.sh first"

stop() {
    local pid
    pid=$(running)
    [ -n "$pid" ] || return 0
    kill -TERM "$pid"
    for ((i = 0; i < patience * 10; i++)); do
        [ -n "$(running)" ] || return 0
        sleep 0.1
    done
    say "it does not stop, and is killed"
    kill -KILL "$pid"
    for ((i = 0; i < 50; i++)); do
        [ -n "$(running)" ] || return 0
        sleep 0.1
    done
    die "process $pid does not end"
}

start() {
    local pid
    umask 077
    # The end of a log that has grown is kept.
    if [ -f "$log" ] && [ "$(stat -c %s "$log")" -gt $((8 << 20)) ]; then
        tail -c $((1 << 20)) "$log" >"$log.new"
        mv "$log.new" "$log"
    fi
    setsid "$program" "${words[@]}" </dev/null >>"$log" 2>&1 &
    pid=$!
    printf '%s %s\n' "$pid" "$(started_at "$pid")" >"$pid_file"
}

stop
start
readonly deadline=$((SECONDS + patience))
while [ "$SECONDS" -lt "$deadline" ]; do
    if [ -z "$(running)" ]; then
        tail -n 20 "$log" >&2
        die "the service ended at once; its last words are above"
    fi
    if is_healthy; then
        say "the workspace service serves $root at $url"
        exit 0
    fi
    sleep 0.1
done
tail -n 20 "$log" >&2
die "the service is not healthy after $patience s; the end of its log is above"
