#!/usr/bin/env bash
# Builds the images of images/ without a container registry: Debian with mmdebstrap, the rest as downloads.txt says.
#
#   scripts/images.sh                 base, node24 and python3.13, then into this machine's image stores
#   scripts/images.sh node24          only this one, and what it lies on
#   scripts/images.sh --force         although nothing has changed: newer Debian packages
#   scripts/images.sh --no-import     only the archives in .build/images/
#   scripts/images.sh --arch arm64    for arm64 (or amd64) machines: where this one is none, by emulation, and only
#                                     the archives, .build/images/<image>-arm64.tar.zst
#
# Each image becomes an archive as `docker save` writes it, of layers that the images share. It is imported into
# Sandbank's own store and, where a Docker daemon answers, loaded there. Debian's mirror is the one that apt uses here.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/image-definitions.sh

readonly SUITE=trixie OUT=.build/images
# The time of every file in a layer of ours, so that the same input is the same layer.
export SOURCE_DATE_EPOCH=1767225600 LC_ALL=C.UTF-8 TZ=UTC

fail() {
    printf 'images: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}
say() { printf 'images: %s\n' "$*" >&2; }

native=$(dpkg --print-architecture)
readonly native
wanted=() force=no import=yes arch=$native
while [ $# -gt 0 ]; do
    case "$1" in
        --force) force=yes ;;
        --no-import) import=no ;;
        --arch=*) arch=${1#*=} ;;
        --arch)
            [ $# -gt 1 ] || fail "--arch needs an architecture" "choose amd64 or arm64"
            arch=$2
            shift
            ;;
        -h | --help)
            sed -n '2,12s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        -*) fail "unknown option $1" "see $0 --help" ;;
        *)
            [ -f "images/$1/Dockerfile" ] || fail "there is no image $1" "choose of: $(cd images && echo */ | tr -d /)"
            wanted+=("$1")
            ;;
    esac
    shift
done
[ "${#wanted[@]}" -gt 0 ] || wanted=(base node24 python3.13)
case "$arch" in
    amd64 | arm64) ;;
    *) fail "there are no images for $arch" "choose amd64 or arm64 with --arch" ;;
esac
# Another architecture's archives have names of their own, and its tools take their time.
suffix='' patience=60
[ "$arch" = "$native" ] || suffix=-$arch patience=600
readonly arch suffix patience

missing=()
for pair in mmdebstrap:mmdebstrap npm:npm jq:jq zstd:zstd python3:python3 unshare:util-linux chroot:coreutils; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
[ -e "$KEYRING" ] || missing+=(debian-archive-keyring)
[ "$arch" = "$native" ] || command -v arch-test >/dev/null || missing+=(arch-test)
[ "${#missing[@]}" = 0 ] || fail "these are missing: ${missing[*]}" \
    "run scripts/setup.sh --images${suffix:+ --arch $arch}, or as root: apt-get install --no-install-recommends ${missing[*]}"
[ "$(id -u)" = 0 ] || fail "building a root file system needs root" "run it with sudo"

mkdir -p "$OUT/layers" "$OUT/downloads"
exec 9>"$OUT/lock"
flock --nonblock 9 || fail "another build is going on" "wait for it"
work=$(mktemp -d "$PWD/$OUT/work.XXXXXX")
# Only what is below it is removed, never what is mounted there.
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Programs of another architecture must run in a root that has no emulator.
if [ "$arch" != "$native" ] && ! arch-test -c "$work" "$arch" >/dev/null 2>&1; then
    grep -qw binfmt_misc /proc/filesystems ||
        fail "this kernel cannot run programs of $arch: it has no binfmt_misc" \
            "modprobe binfmt_misc; where there is no such module, build on a machine that is $arch"
    fail "programs of $arch do not run on this $native machine" "run scripts/setup.sh --images --arch $arch"
fi

sum() { sha256sum | cut -d ' ' -f 1; }

# Keys say what a layer is made of. A new key is a new layer; what has one is not made again.
base_key() {
    { cat images/base/packages.txt images/configure.sh && echo "$SUITE $arch $SOURCE_DATE_EPOCH" && declare -f make_base sources; } | sum
}
part_key() {
    { echo "$1 $arch $SOURCE_DATE_EPOCH" && cat images/part.sh images/downloads.txt && declare -f make_part; } | sum
}

make_base() { # make_base FILE
    local list progress=()
    list=$(sources "$SUITE")
    [ -n "$list" ] || fail "apt knows no mirror of Debian here" \
        "add one below /etc/apt/sources.list.d and run apt-get update; its suite does not matter"
    [ -t 2 ] || progress=(--quiet)
    # Without documentation, as in Debian's own slim images.
    mmdebstrap --mode=root --variant=minbase --format=tar --architectures="$arch" --keyring="$KEYRING" "${progress[@]}" \
        --include="$(uncommented images/base/packages.txt | paste -s -d ,)" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --customize-hook='install -m 755 images/configure.sh "$1/configure.sh"' \
        --customize-hook='chroot "$1" /configure.sh' --customize-hook='rm "$1/configure.sh"' \
        "$SUITE" "$1" - <<<"$list" ||
        fail "mmdebstrap could not build Debian $SUITE" "its message is above; check the mirror and the disk, then run this again"
}

make_part() { # make_part PART FILE
    local root=$work/$1
    images/fetch.sh "$arch" "$OUT/downloads"
    mkdir "$root"
    images/part.sh "$1" "$OUT/downloads" "$arch" "$root"
    tar --create --file "$2" --directory "$root" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu \
        --mtime="@$SOURCE_DATE_EPOCH" usr
    rm -rf "$root"
}

layer() { # layer PART: its tar, made if it is not there
    local part=$1 key file started=$SECONDS
    if [ "$part" = base ]; then key=$(base_key); else key=$(part_key "$part"); fi
    file=$OUT/layers/$part-$arch-${key:0:16}.tar
    if [ ! -e "$file" ] || { [ "$force$part" = yesbase ] && [ ! -e "$work/base.fresh" ]; }; then
        say "making the layer $part"
        if [ "$part" = base ]; then make_base "$work/base.tar"; else make_part "$part" "$work/$part.tar"; fi
        rm -f "$OUT/layers/$part-$arch-"*
        mv "$work/$part.tar" "$file"
        : >"$work/$part.fresh"
        say "made the layer $part: $(($(stat -c %s "$file") >> 20)) MiB in $((SECONDS - started)) s"
    fi
    layer_file=$file
}

# Unpacks the layers and asks every tool for its version, as the image's user, in namespaces of its own.
check() { # check IMAGE LAYER...
    local image=$1 root=$work/check expected command answer wrong=0
    shift
    mkdir "$root"
    for file; do tar --extract --file "$file" --directory "$root" --numeric-owner; done
    while IFS='|' read -r expected command; do
        # shellcheck disable=SC2086,SC2016 # the command is words
        answer=$(unshare --mount --pid --net --uts --ipc --fork --kill-child --mount-proc="$root/proc" \
            chroot --userspec=sandbox:sandbox "$root" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/tmp \
            timeout "$patience" $command 2>&1 </dev/null | head -n 1) || true
        if [[ $answer != "$expected"* ]]; then
            say "$image: \`$command\` answers \"$answer\", not \"$expected…\""
            wrong=1
        fi
    done < <(answers_of "$image")
    rm -rf --one-file-system "$root"
    [ "$wrong" = 0 ] || fail "the image $image is not what its definition says" \
        "correct images/versions.txt, packages.txt or downloads.txt"
}

# The configuration is that of base/Dockerfile, which is where people look for it.
config() { # config LAYER...
    local dockerfile=images/base/Dockerfile diffs
    diffs=$(for file; do echo "sha256:$(sum <"$file")"; done | jq -R . | jq -s -c .)
    jq -n -c --arg arch "$arch" --argjson diffs "$diffs" \
        --arg created "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" \
        --arg user "$(sed -n 's/^USER //p' "$dockerfile")" \
        --arg workdir "$(sed -n 's/^WORKDIR //p' "$dockerfile")" \
        --argjson env "$(sed -n 's/^ENV //p' "$dockerfile" | jq -R . | jq -s -c .)" \
        --argjson cmd "$(sed -n 's/^CMD //p' "$dockerfile")" \
        '{architecture: $arch, os: "linux", created: $created, config: {User: $user, Env: $env, Cmd: $cmd, WorkingDir: $workdir},
          rootfs: {type: "layers", diff_ids: $diffs}, history: [$diffs[] | {created: $created, created_by: "scripts/images.sh"}]}'
}

archive() { # archive IMAGE LAYER...: as `docker save` writes it
    local image=$1 dir=$work/$1 id names=()
    shift
    mkdir "$dir"
    config "$@" >"$dir/config"
    id=$(sum <"$dir/config")
    mv "$dir/config" "$dir/$id.json"
    for file; do
        names+=("$(basename "$file")")
        ln "$file" "$dir/"
    done
    jq -n -c --arg id "$id.json" --arg tag "$image:latest" \
        '[{Config: $id, RepoTags: [$tag], Layers: $ARGS.positional}]' --args "${names[@]}" >"$dir/manifest.json"
    tar --create --directory "$dir" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu \
        --mtime="@$SOURCE_DATE_EPOCH" manifest.json "$id.json" "${names[@]}" |
        zstd --quiet --threads=0 --force -o "$work/$image.tar.zst"
    rm -rf "$dir"
    mv "$work/$image.tar.zst" "$OUT/$image$suffix.tar.zst"
    echo "sha256:$id" >"$OUT/$image$suffix.id"
}

build() { # build IMAGE
    local image=$1 layers=() key part layer_file started=$SECONDS
    for part in base $(parts_of "$image"); do
        layer "$part"
        layers+=("$layer_file")
    done
    key=$({ printf '%s\n' "${layers[@]}" && stat -c %Y "${layers[@]}" && cat images/versions.txt images/base/Dockerfile &&
        declare -f check answers_of config archive; } | sum)
    if [ -e "$OUT/$image$suffix.tar.zst" ] && [ "$(cat "$OUT/$image$suffix.key" 2>/dev/null)" = "$key" ]; then
        say "$image$suffix is up to date"
        return
    fi
    say "checking $image$suffix"
    check "$image" "${layers[@]}"
    archive "$image" "${layers[@]}"
    echo "$key" >"$OUT/$image$suffix.key"
    say "built $OUT/$image$suffix.tar.zst: $(($(stat -c %s "$OUT/$image$suffix.tar.zst") >> 20)) MiB in $((SECONDS - started)) s"
}

program() {
    local each
    for each in "${SANDBANK:-}" target/release/sandbank "$(command -v sandbank || true)"; do
        [ -z "$each" ] || [ ! -x "$each" ] || { echo "$each" && return; }
    done
}

# Both stores know an image by its configuration, so one that is there already is not read again.
import_native() {
    local sandbank image here
    sandbank=$(program)
    if [ -z "$sandbank" ]; then
        say "there is no sandbank program yet; then: sandbank image import <image> $OUT/<image>.tar.zst"
        return
    fi
    here=$("$sandbank" image ls --json)
    for image; do
        if jq -e --arg name "$image" --arg id "$(cat "$OUT/$image.id")" \
            'any(.[]; .name == $name and .digest == $id)' <<<"$here" >/dev/null; then
            say "sandbank has $image already"
        else
            "$sandbank" image import "$image" "$OUT/$image.tar.zst"
        fi
    done
}

import_docker() {
    local image
    if ! command -v docker >/dev/null || ! timeout 10 docker version >/dev/null 2>&1; then
        say "no Docker daemon answers here; then: zstd -dc $OUT/<image>.tar.zst | docker load"
        return
    fi
    for image; do
        if [ "$(docker image inspect --format '{{.Id}}' "$image:latest" 2>/dev/null)" = "$(cat "$OUT/$image.id")" ]; then
            say "Docker has $image already"
        else
            # Docker before 23 does not read zstd.
            zstd --quiet --decompress --stdout "$OUT/$image.tar.zst" | docker load --quiet
        fi
    done
}

for image in "${wanted[@]}"; do build "$image"; done
[ "$import" = yes ] || exit 0
if [ "$arch" != "$native" ]; then
    # Neither store here gets them: ours refuses them, and Docker would give them the names of this machine's own.
    say "nothing was imported: these are for $arch, and this machine is $native. Copy them to one that is, and there:"
    for image in "${wanted[@]}"; do
        say "  sandbank image import $image $image$suffix.tar.zst   (Docker: zstd -dc $image$suffix.tar.zst | docker load)"
    done
    exit 0
fi
import_native "${wanted[@]}"
import_docker "${wanted[@]}"
