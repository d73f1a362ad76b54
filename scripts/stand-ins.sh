# Stand-ins for the images that our Dockerfiles start from, where no registry can be reached: Debian made with mmdebstrap,
# with what this machine needs to reach its mirrors, and with as little else as possible, so that what a Dockerfile takes
# for granted shows. Sourced, after image-definitions.sh; $work is a directory.
# shellcheck shell=bash disable=SC2154

# The images of others that Dockerfiles start from.
bases() { sed -n 's/^FROM \([a-z]*:[^ ]*\).*/\1/p' "$@" | sort -u; } # bases DOCKERFILE...

# What makes this machine's clients find and trust their registries, below a root. No credentials.
registries() { # registries ROOT
    local found
    mkdir -p "$1/usr/local/share/ca-certificates" "$1/root/.config/pip"
    find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$1/usr/local/share/ca-certificates/" \; 2>/dev/null || true
    found=${PIP_INDEX_URL:-$(python3 -m pip config get global.index-url 2>/dev/null || true)}
    [ -z "$found" ] || printf '[global]\nindex-url = %s\n' "$found" >"$1/root/.config/pip/pip.conf"
    echo "registry=$(npm config get registry 2>/dev/null)" >"$1/root/.npmrc"
}

debian() { # debian SUITE FILE PACKAGE...: a root as a tar, slim as Debian's own
    local suite=$1 file=$2 list root=$work/stand-in packages
    shift 2
    list=$(sources "$suite")
    [ -n "$list" ] || fail "apt knows no mirror of Debian here" "add one below /etc/apt/sources.list.d, and run apt-get update"
    case $list in *https:*) set -- "$@" ca-certificates ;; esac
    packages=("${@/#/--include=}")
    mkdir "$root"
    registries "$root"
    # shellcheck disable=SC2016 # mmdebstrap tells its hooks where the root is
    mmdebstrap --quiet --mode=root --variant=minbase --format=tar --keyring="$KEYRING" "${packages[@]}" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --customize-hook="cp --recursive --no-target-directory '$root' \"\$1\"" \
        --customize-hook='[ ! -e "$1/etc/ca-certificates.conf" ] || chroot "$1" update-ca-certificates >/dev/null 2>&1' \
        "$suite" "$file" - <<<"$list" ||
        fail "mmdebstrap could not build Debian $suite" "its message is above; check the mirror and the disk, then run this again"
    rm -rf "$root"
}

# What rust:… has of Debian's packages are hundreds; a compiler and a linker must do. No rustup either.
rust() { # rust SUITE FILE
    local toolchain settings=${CARGO_HOME:-$HOME/.cargo}/config.toml
    toolchain=$(rustc --print sysroot)
    debian "$1" "$2" gcc libc6-dev ca-certificates
    tar --append --file "$2" --owner=0 --group=0 --exclude='*/share/doc' --transform='s,^\.,./usr/local/cargo,' \
        --directory "$toolchain" ./bin ./lib
    [ ! -e "$settings" ] || tar --append --file "$2" --owner=0 --group=0 --absolute-names \
        --transform='s,.*,./usr/local/cargo/config.toml,' "$settings"
}

stand_in() { # stand_in IMAGE
    local image=$1 path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    local file=$work/stand-in.tar suite change=()
    suite=${image#*:}
    case $image in
        debian:*-slim) debian "${suite%-slim}" "$file" ;;
        rust:*-*)
            rust "${suite##*-}" "$file"
            change=(--change 'ENV CARGO_HOME=/usr/local/cargo')
            path=/usr/local/cargo/bin:$path
            ;;
        *) fail "there is no stand-in for $image" "make one in scripts/stand-ins.sh" ;;
    esac
    docker import --change "ENV PATH=$path" "${change[@]}" --change 'CMD ["bash"]' "$file" "$image" >/dev/null
    rm "$file"
}
