#!/usr/bin/env bash
# Installs what Sandbank needs to be built and run on Debian or Ubuntu, and nothing else.
#
#   scripts/setup.sh                  to build and serve
#   scripts/setup.sh --test           also what the tests use
#   scripts/setup.sh --bench          also what the benchmark compares with
#   scripts/setup.sh --instructions   also what counts instructions
#   scripts/setup.sh --fuzz           also what fuzzing is linked with
#   scripts/setup.sh --schemathesis   also what checks the API's document
#   scripts/setup.sh --images         also what builds the images of images/; with --arch arm64 (or amd64), for such machines
#
# Safe to run again: it looks first, says what it is about to install, and is silent when
# nothing is missing.
set -euo pipefail

readonly MIN_RUST_MINOR=94

# Where apt has no rustup (Debian 12), its installer comes from Rust's own host. The sums are those
# published beside it; change version and sums together.
readonly RUSTUP_VERSION=1.28.2
readonly RUSTUP_SHA256_X86_64=20a06e644b0d9bd2fbdbfd52d42540bdde820ea7df86e92e533c073da0cdd43c
readonly RUSTUP_SHA256_AARCH64=e3853c5a252fca15252d07cb23a1bdd9377a8c6f3efa01531109281ae47f841c

fail() {
    printf 'setup: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

level=serve foreign=
case "${1:-}" in
    "") ;;
    --test | --bench | --instructions | --fuzz | --schemathesis) level=${1#--} ;;
    --images)
        level=images
        # The options of scripts/images.sh, of which one matters here.
        for ((at = 2; at <= $#; at++)); do
            case "${!at}" in
                --arch=*) foreign=${!at#*=} ;;
                --arch) at=$((at + 1)) && foreign=${!at:-} ;;
            esac
        done
        case "$foreign" in
            "" | amd64 | arm64) [ "$foreign" != "$(dpkg --print-architecture 2>/dev/null)" ] || foreign= ;;
            *) fail "there are no images for $foreign" "choose amd64 or arm64" ;;
        esac
        ;;
    -h | --help)
        sed -n '2,13s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1" "see $0 --help" ;;
esac
cd "$(dirname "$0")/.."

TOOLCHAIN=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
readonly TOOLCHAIN

[ "$(uname -s)" = Linux ] || fail "Sandbank's native engine needs Linux, this is $(uname -s)" \
    "use a Linux machine or virtual machine"

# Administration tools live in sbin and rustup's in the home directory; neither is in everybody's PATH.
# Rustup's go first: a distribution's older cargo may be there too.
export HOME="${HOME:-/root}"
readonly CARGO_BIN="${CARGO_HOME:-$HOME/.cargo}/bin"
PATH="$CARGO_BIN:$PATH:/usr/local/sbin:/usr/sbin:/sbin"

packages=()
peers=()
browser=()
into=packages
need() { # need <package> <program>...: the package is wanted when a program is not found
    local package=$1 program
    local -n list=$into
    shift
    for program in "$@"; do
        if ! command -v "$program" >/dev/null 2>&1; then
            list+=("$package")
            return
        fi
    done
}

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

emulator() { # emulator ARCH: qemu's name of it
    case "$1" in amd64) echo qemu-x86_64 ;; arm64) echo qemu-aarch64 ;; esac
}

# Whether programs of another architecture run, also in a root of their own, where no emulator can be found by its path.
runs() { # runs ARCH
    local root status=0
    command -v arch-test >/dev/null 2>&1 || return 1
    root=$(mktemp -d)
    as_root arch-test -c "$root" "$1" >/dev/null 2>&1 || status=1
    rmdir "$root"
    return "$status"
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
case "$level" in
    test)
        need bubblewrap bwrap
        need python3 python3
        python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
        need procps ps
        need e2fsprogs mkfs.ext4 e2fsck
        need mount losetup
        need perl-base perl
        need openssl openssl
        need busybox-static busybox
        need ripgrep rg
        # A server of ssh that is a program alone: no service comes with it.
        need dropbear-bin dropbear dropbearkey
        need openssh-client ssh ssh-keygen
        into=peers
        need docker.io dockerd docker
        need docker-compose docker-compose
        # A Docker that is not root.
        need rootlesskit rootlesskit
        need uidmap newuidmap
        need slirp4netns slirp4netns
        # By itself: where there is no such package, the others are still to be had.
        into=browser
        need chromium chromium
        ;;
    fuzz) need g++ c++ ;;
    images)
        need mmdebstrap mmdebstrap
        need npm npm
        need jq jq
        need zstd zstd
        need python3 python3
        python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
        [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || packages+=(debian-archive-keyring)
        if [ -n "$foreign" ] && ! runs "$foreign"; then
            need arch-test arch-test
            need qemu-user-static "$(emulator "$foreign")-static"
            need binfmt-support update-binfmts
        fi
        ;;
    schemathesis)
        need python3 python3
        python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
        ;;
    bench)
        into=peers
        need bubblewrap bwrap
        need crun crun
        need runc runc
        need docker.io dockerd docker
        need ripgrep rg
        need git git
        ;;
    instructions) need valgrind valgrind ;;
esac

install_packages() {
    local list="$*"
    command -v apt-get >/dev/null 2>&1 ||
        fail "these are missing and there is no apt-get here: $list" \
            "install their equivalents with your package manager and run this again"
    can_be_root ||
        fail "these packages are missing: $list" \
            "run as root: apt-get install --no-install-recommends $list"
    echo "setup: installing with apt-get: $list"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
        fail "apt-get update failed" "its message is above; check this machine's network and apt sources"
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends --no-remove "$@" >/dev/null ||
        fail "apt-get could not install: $list" "its message is above; repair it and run this again"
}

# What the benchmark compares with and what tests of the Docker engine use. Both do without those that
# cannot be had, and say so; services must not start, as each runs a Docker daemon of its own and ends it.
install_peers() {
    local policy=/usr/sbin/policy-rc.d ours=no status=0 service
    if [ ! -e "$policy" ] && can_be_root; then
        ours=yes
        # Whatever ends this, other packages' services must start as ever.
        trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
        trap 'exit 130' INT TERM
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod +x "$policy"
    fi
    (
        trap - EXIT
        install_packages "$@"
    ) || status=$?
    if [ "$ours" = yes ]; then
        as_root rm -f "$policy"
        trap - EXIT INT TERM
    fi
    if [ "$status" != 0 ]; then
        echo "setup: tests and benchmark go on without what is missing of: $*" >&2
    elif [ -d /run/systemd/system ]; then
        case " $* " in *" docker.io "*)
            for service in docker.service docker.socket containerd.service; do
                as_root systemctl disable --quiet "$service" 2>/dev/null || true
            done
            echo "setup: Docker is installed but neither started nor enabled; to have it:" \
                "systemctl enable --now docker"
            ;;
        esac
    fi
}

# Has the kernel give programs of another architecture to qemu. A machine with systemd has that from the
# package; elsewhere it is until the next boot.
register() { # register ARCH
    local handler
    handler=$(emulator "$1")
    grep -qw binfmt_misc /proc/filesystems || as_root modprobe binfmt_misc 2>/dev/null ||
        fail "this kernel cannot run programs of $1: it has no binfmt_misc" \
            "use a kernel with CONFIG_BINFMT_MISC, or build on a machine that is $1"
    echo "setup: registering $handler in /proc/sys/fs/binfmt_misc; to undo it: update-binfmts --disable $handler"
    # What the package would do, which leaves it out in a container; the second one mounts, too.
    as_root update-binfmts --import "$handler" && as_root update-binfmts --enable "$handler" || true
    runs "$1" || fail "programs of $1 do not run here although $handler is installed" \
        "see what is in /proc/sys/fs/binfmt_misc: $handler must be there, enabled, with the flag F; in a container \
this is to be done on the machine that it runs on"
}

rust_minor() { # the N of cargo 1.N.x; empty when cargo is absent or cannot start
    cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p'
}

rust_is_enough() {
    local minor
    minor=$(rust_minor)
    [ -n "$minor" ] && [ "$minor" -ge "$MIN_RUST_MINOR" ]
}

readonly RUST_ADVICE="install Rust 1.$MIN_RUST_MINOR or newer: https://rustup.rs, then run this again"

# Downloads rustup's installer, checks it, and installs rustup for this user.
install_rust_from_rust_host() {
    local triple sum root url dir
    case "$(uname -m)" in
        x86_64) triple=x86_64-unknown-linux-gnu sum=$RUSTUP_SHA256_X86_64 ;;
        aarch64 | arm64) triple=aarch64-unknown-linux-gnu sum=$RUSTUP_SHA256_AARCH64 ;;
        *) fail "Rust is missing, and this knows no installer for $(uname -m)" "$RUST_ADVICE" ;;
    esac
    root="${RUSTUP_UPDATE_ROOT:-${RUSTUP_DIST_SERVER:-https://static.rust-lang.org}/rustup}"
    url="$root/archive/$RUSTUP_VERSION/$triple/rustup-init"
    echo "setup: installing Rust $TOOLCHAIN with rustup $RUSTUP_VERSION for $(id -un):" \
        "programs in $CARGO_BIN, toolchain in ${RUSTUP_HOME:-$HOME/.rustup}; shell profiles stay as they are"
    echo "setup: downloading $url"
    dir=$(mktemp -d)
    # shellcheck disable=SC2064 # the directory of now is the one to remove
    trap "rm -rf '$dir'" EXIT
    curl --fail --location --retry 3 --connect-timeout 20 --progress-bar --output "$dir/rustup-init" "$url" ||
        fail "the download of $url failed" \
            "check this machine's network and proxy, or set RUSTUP_UPDATE_ROOT to a mirror; or $RUST_ADVICE"
    echo "$sum  $dir/rustup-init" | sha256sum --check --status ||
        fail "what came from $url is not rustup $RUSTUP_VERSION: its sha256 is $(sha256sum <"$dir/rustup-init" | cut -d ' ' -f 1), not $sum" \
            "try again; if it stays so, something between here and there changes downloads: do not run it"
    chmod +x "$dir/rustup-init"
    # Other Rust programs in PATH, too old ones, are no reason for rustup to stop.
    RUSTUP_INIT_SKIP_PATH_CHECK=yes "$dir/rustup-init" -y --no-modify-path --profile minimal \
        --default-toolchain none ||
        fail "rustup could not be installed" \
            "its message is above; a full disk is the usual reason. Then run this again"
    hash -r
}

install_rust() {
    if ! command -v rustup >/dev/null 2>&1; then
        # apt's rustup and apt's cargo exclude each other; nothing that is there is removed.
        if can_be_root && ! command -v cargo >/dev/null 2>&1 && apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
            install_packages rustup
        else
            install_rust_from_rust_host
        fi
    fi
    if ! rust_is_enough; then
        echo "setup: installing Rust $TOOLCHAIN with rustup"
        rustup toolchain install "$TOOLCHAIN" --profile minimal --component clippy --component rustfmt ||
            fail "rustup could not install Rust $TOOLCHAIN" \
                "its message is above; check network and disk space, then run this again"
    fi
    rust_is_enough ||
        fail "cargo is $(cargo --version 2>/dev/null || echo absent) even after rustup" "$RUST_ADVICE"
}

if [ "${#packages[@]}" -gt 0 ]; then
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    install_packages "${packages[@]}"
fi
[ -z "$foreign" ] || runs "$foreign" || register "$foreign"
[ "${#peers[@]}" = 0 ] || install_peers "${peers[@]}"
# Debian 13 has Docker's client in a package of its own.
case " ${peers[*]} " in *" docker.io "*)
    command -v docker >/dev/null 2>&1 || install_peers docker-cli
    ;;
esac
[ "${#browser[@]}" = 0 ] || install_peers "${browser[@]}"

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
    # The tests that use them say that they are skipped where they could not be had.
    scripts/unpacked.sh docker-registry >/dev/null ||
        echo "setup: docker-registry could not be had; the tests that pull images are skipped" >&2
    # Debian has it from 13 on.
    scripts/unpacked.sh runsc trixie >/dev/null ||
        echo "setup: gVisor's runsc could not be had; its tests are skipped" >&2
    scripts/sandkasten-client.sh >/dev/null ||
        echo "setup: the published client of Sandkasten could not be installed; its tests are skipped" >&2
fi
