# A Docker daemon of a script's own, as crates/test-support has one for tests: in mount, pid and network namespaces, so
# that nothing of it outlives the script, and a Docker that is there already is neither used nor disturbed. Its networks
# reach the machine's by slirp4netns, so a build has the network that it would have elsewhere. Sourced.
# shellcheck shell=bash

# Mounts hide /run, where a containerd of the system would be found, and /etc/docker. Copies of what others have mounted
# on loop devices go first: they would keep it in use.
# shellcheck disable=SC2016 # it is for another shell
readonly HOLD='mounted=$(cat /proc/self/mounts)
echo "$mounted" | while read -r device place rest; do
    case $device in /dev/loop*|nsfs) umount --lazy "$place" ;; esac
done
mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /etc/docker && ip link set lo up && echo held && exec sleep infinity'

# Whom slirp4netns lets ask for names, in place of the machine's resolvers: those may be on its loopback.
readonly RESOLVER=10.0.2.3

docker_dir='' docker_first='' docker_pids=() docker_cgroup=''

start_docker() { # start_docker DIRECTORY: an empty one; sets DOCKER_HOST
    docker_dir=$1 docker_cgroup=sandbank-dockerfiles-$$
    local _
    mkdir -p /etc/docker # it stays: another may be about to mount over it
    # Not private: what the host unmounts must not live on in this copy.
    unshare --mount --pid --net --fork --mount-proc --kill-child --propagation slave sh -c "$HOLD" \
        >"$docker_dir/held" 2>"$docker_dir/hold.log" &
    docker_pids=("$!")
    for _ in $(seq 100); do
        [ ! -s "$docker_dir/held" ] || break
        sleep 0.1
    done
    [ -s "$docker_dir/held" ] || fail "namespaces for a private Docker cannot be made: $(cat "$docker_dir/hold.log")" "it needs a real root"
    docker_first=$(cut -d ' ' -f 1 "/proc/${docker_pids[0]}/task/${docker_pids[0]}/children")
    slirp4netns --configure --mtu=65520 --disable-host-loopback "$docker_first" tap0 >"$docker_dir/slirp.log" 2>&1 &
    docker_pids+=("$!")
    in_docker dockerd --host "unix://$docker_dir/docker.sock" --data-root "$docker_dir/data" --exec-root "$docker_dir/exec" \
        --pidfile "$docker_dir/docker.pid" --dns "$RESOLVER" --cgroup-parent "/$docker_cgroup" \
        --log-level warn >"$docker_dir/daemon.log" 2>&1 &
    docker_pids+=("$!")
    export DOCKER_HOST=unix://$docker_dir/docker.sock
    for _ in $(seq 300); do
        ! docker version >/dev/null 2>&1 || return 0
        kill -0 "${docker_pids[2]}" 2>/dev/null || break
        sleep 0.2
    done
    fail "no answer from a private Docker daemon: $(tail -n 5 "$docker_dir/daemon.log")" "its log is above"
}

# A program in the daemon's namespaces, where ports that containers publish are.
in_docker() { nsenter --target "$docker_first" --mount --pid --net -- "$@"; }

# The first process of the namespaces takes every other with it.
stop_docker() {
    local point _
    [ "${#docker_pids[@]}" -gt 0 ] || return 0
    [ -z "$docker_first" ] || kill -KILL "$docker_first" 2>/dev/null || true
    kill "${docker_pids[@]}" 2>/dev/null || true
    wait "${docker_pids[@]}" 2>/dev/null || true
    docker_first='' docker_pids=()
    # Cgroups are empty a moment after.
    for _ in $(seq 100); do
        # shellcheck disable=SC2013 # they have no spaces
        for point in $(awk '$3 ~ /^cgroup/ { print $2 }' /proc/self/mounts); do
            [ ! -d "$point/$docker_cgroup" ] || find "$point/$docker_cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true
        done
        compgen -G "/sys/fs/cgroup/*/$docker_cgroup" >/dev/null || [ -d "/sys/fs/cgroup/$docker_cgroup" ] || break
        sleep 0.1
    done
}
