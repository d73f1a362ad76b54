#!/bin/sh
# What the server's image is made of, below <directory>: `root`, with the program, the libraries it
# was linked with and the authorities that are trusted, as this system has them, and an empty `data`.
# There is no shell and no other program in it: whoever got in would hold the Docker socket.
set -eu
[ $# = 2 ] || { echo "usage: deploy/root.sh <program> <directory>" >&2; exit 64; }
program=$(realpath "$1")
mkdir -p "$2/root" "$2/data"
cd "$2/root"

# The C library's own parts, and its loader.
libraries=$(ldd "$program" | sed -n 's|^.*[[:space:]]\(/[^ ]*\) (0x[0-9a-f]*)$|\1|p')
[ -n "$libraries" ] || { echo "deploy/root.sh: ldd names no library of $program" >&2; exit 1; }
for library in $libraries; do
    install -D -m 0755 "$library" ".$library"
done
install -D -m 0755 "$program" usr/local/bin/sandbank
# Without them no https: to models' servers, and to a collector of traces.
authorities=/etc/ssl/certs/ca-certificates.crt
if [ -s "$authorities" ]; then
    install -D -m 0644 "$authorities" ".$authorities"
fi
install -d -m 1777 tmp
mkdir -p etc
printf 'root:x:0:0:root:/:/nologin\nsandbank:x:10001:10001:sandbank:/var/lib/sandbank:/nologin\n' >etc/passwd
printf 'root:x:0:\nsandbank:x:10001:\n' >etc/group
