#!/usr/bin/env bash
# Installs what Sandbank needs to be built and run on Debian or Ubuntu, and nothing else.
#
#   scripts/setup.sh           to build and serve
#   scripts/setup.sh --test    also what the tests use
#   scripts/setup.sh --bench   also what the benchmark compares with
#
# Safe to run again: it looks first, says what it is about to install, and is silent when
# nothing is missing.
set -euo pipefail

readonly MIN_RUST_MINOR=94

fail() {
    printf 'setup: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

level=serve
case "${1:-}" in
    "") ;;
    --test) level=test ;;
    --bench) level=bench ;;
    -h | --help)
        sed -n '2,9s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1" "use --test, --bench or nothing" ;;
esac

[ "$(uname -s)" = Linux ] || fail "Sandbank's native engine needs Linux, this is $(uname -s)" \
    "use a Linux machine or virtual machine"

# Administration tools live in sbin and rustup's in the home directory; neither is in everybody's PATH.
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:${HOME:-/root}/.cargo/bin"

packages=()
need() { # need <package> <program>...: the package is wanted when a program is not found
    local package=$1 program
    shift
    for program in "$@"; do
        if ! command -v "$program" >/dev/null 2>&1; then
            packages+=("$package")
            return
        fi
    done
}

need gcc cc
need libc6-dev cc # the static runner links the C library's archive, checked again below
need curl curl
need nftables nft
need iproute2 ip
need btrfs-progs mkfs.btrfs btrfs
[ -e /etc/ssl/certs/ca-certificates.crt ] || packages+=(ca-certificates)
if command -v cc >/dev/null 2>&1 && [ ! -e "$(cc -print-file-name=libc.a)" ]; then
    packages+=(libc6-dev)
fi
if [ "$level" != serve ]; then
    need bubblewrap bwrap
    need python3 python3
fi

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

can_be_root() {
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null 2>&1
}

install_packages() {
    local list="$*"
    command -v apt-get >/dev/null 2>&1 ||
        fail "these are missing and there is no apt-get here: $list" \
            "install their equivalents with your package manager and run this again"
    can_be_root ||
        fail "these packages are missing: $list" \
            "run as root: apt-get install --no-install-recommends $list"
    echo "setup: installing with apt-get: $list"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

rust_minor() { # the N of cargo 1.N.x; empty when cargo is absent or cannot start
    cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p'
}

rust_is_enough() {
    local minor
    minor=$(rust_minor)
    [ -n "$minor" ] && [ "$minor" -ge "$MIN_RUST_MINOR" ]
}

install_rust() {
    local advice="install Rust 1.$MIN_RUST_MINOR or newer: https://rustup.rs, then run this again"
    if ! command -v rustup >/dev/null 2>&1; then
        apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]' ||
            fail "cargo 1.$MIN_RUST_MINOR or newer is missing" "$advice"
        install_packages rustup
    fi
    echo "setup: installing the stable Rust toolchain with rustup"
    rustup toolchain install stable --profile minimal --component clippy --component rustfmt
    rustup default stable
    rust_is_enough || fail "cargo is $(cargo --version 2>/dev/null || echo absent) even after rustup" "$advice"
}

if [ "${#packages[@]}" -gt 0 ]; then
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    install_packages "${packages[@]}"
fi

rust_is_enough || install_rust

if [ "$level" = test ]; then
    for component in clippy fmt; do
        cargo "$component" --version >/dev/null 2>&1 && continue
        [ "$component" = fmt ] && component=rustfmt
        command -v rustup >/dev/null 2>&1 ||
            fail "cargo has no $component" "install the $component that belongs to your Rust toolchain"
        echo "setup: adding $component to the Rust toolchain"
        rustup component add "$component"
    done
fi
