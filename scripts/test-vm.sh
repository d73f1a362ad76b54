#!/usr/bin/env bash
# Boots a small Debian VM with pure cgroup v2 under qemu and runs test binaries in it: those given
# as arguments, or the native engine's; or, with --systemd, scripts/vm-systemd.sh under systemd as
# the first process. Needs root; installs what is missing with apt.
set -euo pipefail
cd "$(dirname "$0")/.."
vm=.build/vm
mkdir -p "$vm"

init=/sbin/vm-init
if [ "${1:-}" = --systemd ]; then
  init=/lib/systemd/systemd
  [ -x target/debug/sandbank ] || { echo "there is no target/debug/sandbank: make test-vm-systemd builds it" >&2; exit 1; }
elif [ $# -eq 0 ]; then
  tests=(cgroup_v2 limits posture lifecycle isolation containment attacks siblings)
  mapfile -t binaries < <(cargo test --locked --package sandbank-engine-native "${tests[@]/#/--test=}" --no-run 2>&1 |
    sed -n 's/.*Executable .*(\(.*\))$/\1/p')
  [ ${#binaries[@]} -eq ${#tests[@]} ] || { echo "building the tests failed: run cargo test -p sandbank-engine-native --no-run" >&2; exit 1; }
  set -- "${binaries[@]}"
fi

need=()
for pair in qemu-system-x86_64:qemu-system-x86 mmdebstrap:mmdebstrap mke2fs:e2fsprogs; do
  command -v "${pair%%:*}" >/dev/null || need+=("${pair##*:}")
done
if [ ${#need[@]} -gt 0 ]; then
  echo "installing: ${need[*]}"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${need[@]}"
fi

if [ ! "$vm/root.img" -nt "$0" ]; then
  echo "making the VM's root file system (once)"
  rm -rf "$vm/root"
  mmdebstrap --quiet --variant=minbase --mode=root \
    --include=linux-image-cloud-amd64,systemd-sysv,dbus,initramfs-tools,bash,coreutils,procps,python3,iproute2,nftables,btrfs-progs,kmod,mount,e2fsprogs \
    bookworm "$vm/root"
  cat > "$vm/root/sbin/vm-init" <<'INIT'
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm /t
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
for module in virtio_blk ext4 btrfs loop overlay nf_tables nft_masq nft_ct veth tun; do modprobe $module 2>/dev/null; done
ip link set lo up
exec /sbin/vm-tests
INIT
  cat > "$vm/root/sbin/vm-tests" <<'TESTS'
#!/bin/sh
mkdir -p /t
mount -o ro /dev/vdb /t
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root SANDBANK_TEST_VM=1
sh /t/run.sh
echo "vm-exit: $?"
sync
echo o > /proc/sysrq-trigger
sleep 60
TESTS
  chmod +x "$vm/root/sbin/vm-init" "$vm/root/sbin/vm-tests"
  units=$vm/root/etc/systemd/system
  mkdir -p "$units/multi-user.target.wants"
  printf '[Service]\nExecStart=/sbin/vm-tests\nStandardOutput=tty\nStandardError=tty\nTTYPath=/dev/console\n' > "$units/vm-tests.service"
  ln -s ../vm-tests.service "$units/multi-user.target.wants/"
  cp "$vm"/root/boot/vmlinuz-* "$vm/vmlinuz"
  cp "$vm"/root/boot/initrd.img-* "$vm/initrd.img"
  mke2fs -q -t ext4 -d "$vm/root" "$vm/root.img.new" 4G
  mv "$vm/root.img.new" "$vm/root.img"
  rm -rf "$vm/root"
fi

rm -rf "$vm/tests"
mkdir "$vm/tests"
if [ "${1:-}" = --systemd ]; then
  cp scripts/vm-systemd.sh deploy/sandbank.service target/debug/sandbank "$vm/tests/"
  echo 'bash /t/vm-systemd.sh' > "$vm/tests/run.sh"
else
  {
    echo "cd /tmp; failed=0"
    for binary in "$@"; do
      name=$(basename "$binary")
      cp "$binary" "$vm/tests/$name"
      echo "echo '== $name'; /t/$name --test-threads=1 || failed=1"
    done
    echo 'exit $failed'
  } > "$vm/tests/run.sh"
fi
size=$(($(du -sm "$vm/tests" | cut -f1) + 64))
mke2fs -q -F -t ext4 -d "$vm/tests" "$vm/tests.img" "${size}M"

timeout "${VM_TIMEOUT:-1500}" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3072 -nographic -no-reboot \
  -kernel "$vm/vmlinuz" -initrd "$vm/initrd.img" \
  -append "root=/dev/vda rw console=ttyS0 quiet init=$init systemd.unified_cgroup_hierarchy=1 systemd.mask=serial-getty@ttyS0.service panic=1" \
  -drive "file=$vm/root.img,if=virtio,format=raw,snapshot=on" \
  -drive "file=$vm/tests.img,if=virtio,format=raw,readonly=on" \
  -nic none | tee "$vm/console.log"
grep -q '^vm-exit: 0' "$vm/console.log"
