#!/bin/sh
# The last step of a base image, in its root: the user, the workspace, and nothing that would fool a program.
# Run by base/Dockerfile and by scripts/images.sh.
set -eu

groupadd --gid 1000 sandbox
useradd --uid 1000 --gid 1000 --home-dir /vercel/sandbox/workspace --no-create-home --shell /bin/bash sandbox
install -d -m 755 -o root -g root /vercel /vercel/sandbox
install -d -m 755 -o sandbox -g sandbox /vercel/sandbox/workspace

# pip may install: what is not the workspace is read-only anyway, so it goes to the user's own directory.
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED

# Nobody becomes root by asking.
if command -v sudo >/dev/null; then
    echo "configure: sudo must not be in the image" >&2
    exit 1
fi

# What two builds would have differently.
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/aux-cache /var/log/apt /var/log/*.log /tmp/* /var/tmp/*
rm -f /etc/machine-id /var/lib/dbus/machine-id
: >/etc/machine-id
# Of the machine that builds; where Docker has mounted its own, they are not in the image anyway.
rm -f /etc/hostname /etc/resolv.conf 2>/dev/null || true
