#!/usr/bin/env bash
# unpacked.sh PROGRAM [SUITE]: prints where a program is that tests use: this machine's own, or that of the package of
# the same name, which is unpacked into .build/ and not installed: it would start a service, or this release of the
# distribution has none. SUITE is a later one of Debian, which is asked then.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 suite=${2:-}

own=$(command -v "$program" || true)
if [ -n "$own" ]; then
    echo "$own"
    exit
fi
place=$PWD/.build/$program
new=$place.new
if [ ! -x "$place/usr/bin/$program" ]; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
        echo "$program: it is not here, and there is no apt-get to fetch it with" >&2
        exit 1
    }
    echo "$program: unpacking it into .build/" >&2
    rm -rf "$new"
    mkdir -p "$new/package"
    trap 'rm -rf "$new"' EXIT
    options=()
    if ! apt-cache show --quiet=2 "$program" >/dev/null 2>&1 && [ -n "$suite" ]; then
        # Lists of its own: those of the system stay as they are.
        # shellcheck source=scripts/debian.sh
        . scripts/debian.sh
        mkdir -p "$new/apt/lists/partial" "$new/apt/cache/archives/partial"
        sources "$suite" >"$new/apt/sources.list"
        options=(-o "Dir::State::Lists=$new/apt/lists" -o "Dir::Cache=$new/apt/cache" -o Acquire::Languages=none
            -o "Dir::Etc::SourceList=$new/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root)
        apt-get "${options[@]}" update -qq >&2
    fi
    (cd "$new/package" && apt-get "${options[@]}" download -qq "$program" 2>/dev/null >&2 ||
        { apt-get "${options[@]}" update -qq >&2 && apt-get "${options[@]}" download -qq "$program" >&2; }) || exit 1
    dpkg-deb --extract "$new/package/$program"_*.deb "$new/root"
    rm -rf "$place"
    mv "$new/root" "$place"
fi
echo "$place/usr/bin/$program"
