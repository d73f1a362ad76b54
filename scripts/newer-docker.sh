#!/usr/bin/env bash
# The suites that know no engine, and those of the Docker engine, over a newer Docker than this machine's release has:
#
#   scripts/newer-docker.sh [suite...]     all, or some by name; SUITE=trixie takes another Debian than testing
#
# Its Docker, containerd and runc are in a root of their own below .build/, where the tests run, with this machine's
# kernel. Nothing is installed here, and what the tests start ends with them. Needs root.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian.sh
. scripts/debian.sh
readonly SUITE=${SUITE:-testing} ROOT=$PWD/.build/newer-docker
readonly PACKAGES=docker.io,docker-cli,containerd,runc,iproute2,iptables,nftables,busybox-static,procps,e2fsprogs,btrfs-progs,git,ripgrep,python3,jq,curl,openssl,ca-certificates,openssh-client,dropbear-bin,uidmap,rootlesskit,slirp4netns,bubblewrap,perl-base,file

fail() {
    printf 'newer-docker: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}
[ "$(id -u)" = 0 ] || fail "private Docker daemons need root" "run it with sudo"
command -v mmdebstrap >/dev/null || fail "there is no mmdebstrap" "run scripts/setup.sh --images"

if [ "$(cat "$ROOT.suite" 2>/dev/null)" != "$SUITE $PACKAGES" ]; then
    echo "newer-docker: making a root of Debian $SUITE below .build/" >&2
    rm -rf --one-file-system "$ROOT" "$ROOT.suite"
    list=$(sources "$SUITE" | grep " $SUITE main" || true)
    [ -n "$list" ] || fail "apt knows no mirror of Debian here" "add one below /etc/apt/sources.list.d, and run apt-get update"
    # The list of a suite that still changes is valid for a week; a mirror may be older.
    echo "$list" |
        mmdebstrap --mode=root --variant=minbase --quiet --keyring="$KEYRING" --include="$PACKAGES" \
            --aptopt='Acquire::Check-Valid-Until "false"' "$SUITE" "$ROOT" - ||
        fail "the root could not be made" "its message is above"
    echo "$SUITE $PACKAGES" >"$ROOT.suite"
fi

# A name is that of a test's file; without names, all that there are for Docker.
suites=("$@")
[ "$#" -gt 0 ] || read -r -a suites <<<"$(make --no-print-directory --silent docker-suites)"
tests=()
for suite in "${suites[@]}"; do tests+=(--test "$suite"); done
built=$(
    cargo test --locked --no-run --message-format json --package sandbank-cli "${tests[@]}"
    [ "$#" -gt 0 ] || cargo test --locked --no-run --message-format json --package sandbank-engine-docker --tests
)
mapfile -t programs < <(jq -r 'select(.executable != null and .profile.test) | .executable' <<<"$built")
[ "${#programs[@]}" -gt 0 ] || fail "no test was built" "the compiler's message is above"

# With a root of its own, not a directory that only looks like it: the tests make namespaces.
# shellcheck disable=SC2016 # it is for another shell
readonly INSIDE='set -eu
root=$1 here=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
for each in /proc /sys /dev /tmp "$here"; do
    mkdir -p "$root$each"
    mount --rbind "$each" "$root$each"
done
mkdir -p "$root/old"
mount -t tmpfs tmpfs "$root/run"
cd "$root"
pivot_root . old
umount --lazy /old
cd "$here"
exec "$@"'

failed=()
for program in "${programs[@]}"; do
    echo "newer-docker: $(basename "${program%-*}")" >&2
    SANDBANK_TEST_ENGINE=docker unshare --mount bash -c "$INSIDE" inside "$ROOT" "$PWD" "$program" || failed+=("$program")
done
chroot "$ROOT" docker --version
[ "${#failed[@]}" = 0 ] || fail "these failed: ${failed[*]##*/}" "their messages are above"
