#!/usr/bin/env bash
# Installs the workspace service on this machine and starts it. May be run again: what is right stays
# as it is, a program that has changed is exchanged, the secret is made once.
#
#   deploy_workspace_service.sh PROGRAM        PROGRAM is the `sandbank` to install
set -euo pipefail
# shellcheck source=deploy/sandbox/settings.sh
. "$(dirname "$0")/settings.sh"

[ $# -eq 1 ] || die "usage: ${0##*/} PROGRAM (the sandbank to install)"
readonly source=$1
[ -x "$source" ] || die "$source is not a program"
"$source" --version >/dev/null || die "$source does not run on this machine"
for tool in curl setsid stat cmp; do
    command -v "$tool" >/dev/null || die "$tool is missing: install it"
done

umask 077
mkdir -p "$root" "$service" "$secrets"
chmod 700 "$service" "$secrets"

if [ ! -s "$secret" ]; then
    head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$secret.new"
    mv "$secret.new" "$secret"
    say "a secret was made: $secret"
fi
chmod 600 "$secret"

if ! cmp -s "$source" "$program"; then
    # Beside it and renamed: a program that runs cannot be written to.
    cp "$source" "$program.new"
    chmod 700 "$program.new"
    mv "$program.new" "$program"
    say "$("$program" --version) was installed"
fi

# What runs is asked, not what was done here: a deploy that was interrupted is finished.
pid=$(running)
if [ -n "$pid" ] && is_current "$pid" && is_healthy; then
    say "nothing has changed, and the workspace service serves $root at $url"
    exit 0
fi
exec "$(dirname "$0")/restart_workspace_service.sh"
