#!/usr/bin/env bash
# fetch.sh ARCH DIRECTORY: downloads what downloads.txt lists for an architecture (amd64, arm64), each file named
# by its integrity, and checks every one, also those that are there already.
#
# npm and pip find their registries in this machine's own configuration. Run by the Dockerfiles and by
# scripts/images.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
arch=$1 into=$2
mkdir -p "$into"
into=$(cd "$into" && pwd)

fail() {
    printf 'fetch: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

integrity() { # integrity ALGORITHM FILE: as npm writes it
    "${1}sum" <"$2" | cut -d ' ' -f 1 | python3 -c \
        'import base64, sys; print(base64.b64encode(bytes.fromhex(sys.stdin.read().strip())).decode())'
}

fetch_npm() { # fetch_npm NAME VERSION: into the current directory
    npm pack --loglevel=error "$1@$2" >/dev/null
}

fetch_pypi() {
    local machine=x86_64
    [ "$arch" = amd64 ] || machine=aarch64
    # Of several files of one version, pip takes the one for the platform that is named first.
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" --dest . "$1==$2"
}

rest=$(mktemp -d)
trap 'rm -rf "$rest"' EXIT
while read -r source name version for expected; do
    case "$for" in "$arch" | all) ;; *) continue ;; esac
    place=$into/$(printf '%s' "$expected" | tr '/+' '_-')
    algorithm=${expected%%-*}
    if [ ! -e "$place" ]; then
        echo "fetch: $name $version for $for" >&2
        (cd "$rest" && "fetch_$source" "$name" "$version") ||
            fail "$name $version could not be had from ${source}'s registry" \
                "its message is above; check the network and the configuration of npm and pip"
        mv "$rest"/* "$place"
    fi
    actual=$algorithm-$(integrity "$algorithm" "$place")
    if [ "$actual" != "$expected" ]; then
        rm -f "$place"
        fail "$name $version is $actual, not $expected" \
            "run it again; if it stays so, something changed between its maker and here: do not use it"
    fi
    printf '%s %s\n' "$name" "$place"
done < <(sed '/^#/d' "$here/downloads.txt") >"$into/$arch.txt.new"
mv "$into/$arch.txt.new" "$into/$arch.txt"
