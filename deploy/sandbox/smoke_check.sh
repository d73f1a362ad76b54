#!/usr/bin/env bash
# Uses a workspace service as a stranger and as its control plane. Each line is one check; ends with
# the number of those that failed.
#
#   smoke_check.sh [--program SANDBANK]        the installed one when it is not said
# shellcheck disable=SC2317 # the checks are called by their names
set -euo pipefail
# shellcheck source=deploy/sandbox/settings.sh
. "$(dirname "$0")/settings.sh"

if [ "${1:-}" = --program ] && [ $# -eq 2 ]; then
    program=$2
elif [ $# -ne 0 ]; then
    die "usage: ${0##*/} [--program SANDBANK]"
fi
[ -x "$program" ] || die "$program is not a program"

failed=0

check() {
    local what=$1
    shift
    if "$@"; then
        say "ok      $what"
    else
        say "FAILED  $what"
        failed=$((failed + 1))
    fi
}

status_of() {
    curl --silent --insecure --max-time 5 --output /dev/null --write-out '%{http_code}' "$@" || true
}

body_of() {
    curl --silent --insecure --max-time 5 "$@" || true
}

healthy() {
    [ "$(status_of "$url/healthz")" = 200 ] && body_of "$url/healthz" | grep -q '"status":"ok"'
}

versioned() {
    body_of "$url/__meta/version" | grep -q '"compatible_from"'
}

closed_to_strangers() {
    [ "$(status_of "$url/hello")" = 403 ] &&
        body_of "$url/hello" | grep -q '^{"detail":"Forbidden: invalid internal credentials"}$'
}

forged() {
    local header
    header="X-Workspace-Internal-Auth: hmac-sha256:$(date +%s):$(printf '0%.0s' {1..64})"
    [ "$(status_of --header "$header" "$url/files?path=x")" = 403 ]
}

# A secret of somebody else's must not do.
closed_to_others() {
    local other result=0
    other=$(mktemp)
    head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$other"
    "$program" workspace-service --secret-file "$other" --probe "$url" 2>/dev/null || result=$?
    rm -f "$other"
    [ "$result" = 77 ]
}

usable() {
    "$program" workspace-service --secret-file "$secret" --probe "$url" >/dev/null
}

private() {
    [ "$(stat -c %a "$secret")" = 600 ]
}

check "it is healthy" healthy
check "it says its version" versioned
check "a stranger is refused" closed_to_strangers
check "a forged signature is refused" forged
check "another secret is refused" closed_to_others
check "files and commands work with the secret" usable
check "the secret is closed to others" private
exit "$failed"
