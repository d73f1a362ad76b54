#!/usr/bin/env bash
# Makes the image of deploy/Dockerfile without a registry, from a program that is built already:
#
#   scripts/daemon-image.sh [tag [program]]
#
# What is in it comes from deploy/root.sh, what it says about itself from the Dockerfile's last
# stage, so the two images cannot differ. Needs root and a Docker CLI (DOCKER_HOST is heeded).
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:-sandbank:latest}
program=${2:-target/release/sandbank}

fail() {
    echo "daemon-image: $1" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "files of the image belong to other users; run this as root"
[ -x "$program" ] || fail "there is no $program; build it: cargo build --release --package sandbank-cli"
command -v docker >/dev/null || fail "there is no docker here"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/made"
deploy/root.sh "$program" "$work/image"

changes=()
last_stage=$(awk '/^FROM/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' deploy/Dockerfile)
while IFS= read -r line; do
    case $line in
        '' | '#'* | 'FROM scratch') ;;
        COPY*)
            [[ $line =~ ^COPY\ --from=build\ --chown=([0-9:]+)\ /image/([a-z]+)/\ (/[^ ]*)$ ]] ||
                fail "this line of deploy/Dockerfile is not understood: $line"
            to="$work/made${BASH_REMATCH[3]}"
            mkdir -p "$to"
            cp --archive "$work/image/${BASH_REMATCH[2]}/." "$to"
            chown --recursive "${BASH_REMATCH[1]}" "$to"
            ;;
        'STOPSIGNAL SIGTERM') ;; # what Docker does anyway; an import cannot say it
        LABEL* | ENV* | USER* | VOLUME* | EXPOSE* | HEALTHCHECK* | ENTRYPOINT* | CMD*)
            changes+=(--change "$line")
            ;;
        *) fail "this line of deploy/Dockerfile is not understood: $line" ;;
    esac
done <<<"$last_stage"

tar --create --directory "$work/made" . | docker import "${changes[@]}" - "$tag" >/dev/null
echo "$tag"
