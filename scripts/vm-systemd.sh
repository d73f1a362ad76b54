#!/bin/bash
# In the VM of `scripts/test-vm.sh --systemd`: the service of deploy/sandbank.service is started,
# restarted, killed and stopped, and a sandbox with a running command lives through all of it.
set -euo pipefail

fail() {
    echo "FAILED: $1"
    journalctl --no-pager --lines 40 --unit sandbank
    systemctl status --no-pager sandbank
    exit 1
}

until_true() { # until_true <what> <command>...: within two minutes
    local what=$1 tries=0
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 120 ] || fail "no $what"
        sleep 1
    done
}

# The same command goes on, its files are there, and its limit is in force.
lives() {
    local before after limit
    [ "$(sandbank exec "$id" -- cat file)" = kept ] || fail "$1: the file is gone"
    before=$(sandbank logs "$id" "$command" | tail -n 1)
    after() { [ "$(sandbank logs "$id" "$command" | tail -n 1)" -gt "$before" ]; }
    until_true "progress of the command" after
    limit=$(cat /sys/fs/cgroup/sandbank/*/"$id"/memory.max)
    [ "$limit" = $((512 << 20)) ] || fail "$1: the memory limit is $limit"
    echo "ok: $1"
}

install /t/sandbank /usr/local/bin/sandbank
install -D -m 0644 /t/sandbank.service /etc/systemd/system/sandbank.service
systemctl daemon-reload
systemctl start sandbank || fail "it does not start"
until_true "answer of the server" sandbank health

sandbank run --keep --memory 512m --network none -- sh -c 'echo kept > file' || fail "no sandbox"
id=$(sandbank ps --quiet)
command=$(sandbank exec "$id" --detach -- sh -c 'i=0; while :; do i=$((i+1)); echo $i; sleep 1; done')
lives "a sandbox under systemd"

systemctl daemon-reload
systemctl restart sandbank || fail "it does not restart"
until_true "answer after a restart" sandbank health
lives "after a restart of the service"

systemctl kill --kill-whom=main --signal=KILL sandbank
until_true "death" sh -c '! sandbank health'
until_true "answer after a crash" sandbank health
lives "after a crash of the server"

systemctl stop sandbank
[ -n "$(cat /sys/fs/cgroup/sandbank/*/"$id"/cgroup.procs /sys/fs/cgroup/sandbank/*/"$id"/*/cgroup.procs 2>/dev/null)" ] ||
    fail "the sandbox ended with the service"
systemctl start sandbank
until_true "answer after a stop" sandbank health
lives "after the service was stopped and started"

sandbank rm --all
[ -z "$(sandbank ps --quiet)" ] || fail "the sandbox is still there"
systemctl stop sandbank
echo "ok: removed"
