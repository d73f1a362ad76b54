#!/usr/bin/env bash
# Prints a docker-registry program for the tests of pulling images: this machine's own, or that of the
# distribution's package, which is unpacked into .build/ and not installed, as it would start a service.
set -euo pipefail
cd "$(dirname "$0")/.."

own=$(command -v docker-registry || true)
place=$PWD/.build/docker-registry
program=$place/usr/bin/docker-registry
if [ -n "$own" ]; then
    echo "$own"
    exit
fi
if [ ! -x "$program" ]; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
        echo "docker-registry: it is not here, and there is no apt-get to fetch it with" >&2
        exit 1
    }
    echo "docker-registry: unpacking it into .build/" >&2
    rm -rf "$place.new"
    mkdir -p "$place.new"
    trap 'rm -rf "$place.new"' EXIT
    (cd "$place.new" && apt-get download -qq docker-registry 2>/dev/null >&2 ||
        { apt-get update -qq >&2 && apt-get download -qq docker-registry >&2; }) || exit 1
    dpkg-deb --extract "$place.new"/docker-registry_*.deb "$place.new"
    rm -rf "$place"
    mv "$place.new" "$place"
fi
echo "$program"
