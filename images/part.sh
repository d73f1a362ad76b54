#!/usr/bin/env bash
# part.sh PART DOWNLOADS ARCH ROOT: puts one part (uv, node, bun), fetched by fetch.sh, below ROOT/usr/local.
# Run by the Dockerfiles and by scripts/images.sh.
set -euo pipefail
part=$1 downloads=$2 arch=$3 root=$4
local=$root/usr/local

fetched() { # fetched NAME: where fetch.sh put it
    awk -v name="$1" '$1 == name { print $2; exit }' "$downloads/$arch.txt"
}

case "$arch" in
    amd64) npm_arch=x64 bun_arch=x64 ;;
    arm64) npm_arch=arm64 bun_arch=aarch64 ;;
    *) echo "part: there are no images for $arch; amd64 and arm64 are supported" >&2 && exit 1 ;;
esac

mkdir -p "$local/bin"
rest=$(mktemp -d)
trap 'rm -rf "$rest"' EXIT
case "$part" in
    uv)
        python3 -m zipfile -e "$(fetched uv)" "$rest"
        install -m 755 "$rest"/uv-*.data/scripts/uv "$rest"/uv-*.data/scripts/uvx "$local/bin/"
        ;;
    node)
        tar -x -z -C "$rest" --strip-components=1 -f "$(fetched "node-linux-$npm_arch")"
        install -m 755 "$rest/bin/node" "$local/bin/"
        cp -R "$rest/include" "$local/" # addons are compiled against it
        mkdir -p "$local/lib/node_modules/npm"
        tar -x -z -C "$local/lib/node_modules/npm" --strip-components=1 -f "$(fetched npm)"
        rm -rf "$local/lib/node_modules/npm/"{docs,man}
        ln -s ../lib/node_modules/npm/bin/npm-cli.js "$local/bin/npm"
        ln -s ../lib/node_modules/npm/bin/npx-cli.js "$local/bin/npx"
        chmod 755 "$local/lib/node_modules/npm/bin/"np[mx]-cli.js
        ;;
    bun)
        tar -x -z -C "$rest" --strip-components=1 -f "$(fetched "@oven/bun-linux-$bun_arch")"
        install -m 755 "$rest/bin/bun" "$local/bin/"
        ln -s bun "$local/bin/bunx"
        ;;
    *) echo "part: $part is none of uv, node, bun" >&2 && exit 1 ;;
esac
chmod -R u=rwX,go=rX "$root"
