#!/bin/sh
# What the server's image is made of, below <directory>: `root`, with the program and the C library
# it was linked with, from the packages of the system that this runs on; and an empty `data`.
# There is no shell and no other program in it: whoever got in would hold the Docker socket.
set -eu
[ $# = 2 ] || { echo "usage: deploy/root.sh <program> <directory>" >&2; exit 64; }
program=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
packages="libc6 libgcc-s1"

mkdir -p "$out/root/usr/local/bin" "$out/root/etc" "$out/root/packages" "$out/data"
cd "$out/root/packages"
[ -n "$(find /var/lib/apt/lists -name '*_Packages*' 2>/dev/null | head -n 1)" ] || apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get download -qq -o APT::Sandbox::User=root $packages
for package in *.deb; do
    dpkg-deb --fsys-tarfile "$package" |
        tar --extract --directory "$out/root" --exclude=./usr/share --exclude=./etc --exclude=gconv
done
cd "$out/root"
rm -r packages
install -m 0755 "$program" usr/local/bin/sandbank
install -d -m 1777 tmp
printf 'root:x:0:0:root:/:/nologin\nsandbank:x:10001:10001:sandbank:/var/lib/sandbank:/nologin\n' >etc/passwd
printf 'root:x:0:\nsandbank:x:10001:\n' >etc/group
