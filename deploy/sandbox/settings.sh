# Read by the other scripts here: where things are, and what they share.
# shellcheck shell=bash disable=SC2034 # the variables are for those who read this
#
#   SANDBOX_WORKSPACE_ROOT  the directory that is served           /home/sprite/workspace
#   SANDBOX_SERVICE_ROOT    program, log, runner's directory       /srv/workspace-api
#   SANDBOX_SECRETS_DIR     the file of secrets                    /home/sprite/.auth
#   WORKSPACE_LISTEN        where the service listens              127.0.0.1:8787
#   WORKSPACE_URL           where others reach it                  http://$WORKSPACE_LISTEN

root=${SANDBOX_WORKSPACE_ROOT:-/home/sprite/workspace}
service=${SANDBOX_SERVICE_ROOT:-/srv/workspace-api}
secrets=${SANDBOX_SECRETS_DIR:-/home/sprite/.auth}
listen=${WORKSPACE_LISTEN:-127.0.0.1:8787}
url=${WORKSPACE_URL:-http://$listen}

program=$service/sandbank
secret=$secrets/workspace.secret
log=$service/service.log
pid_file=$service/service.pid

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

say() {
    printf '%s\n' "$*"
}

# The words of a start; the same for a check of them.
words=(workspace-service --root "$root" --listen "$listen" --secret-file "$secret" --data-dir "$service/data")

# Ticks from the boot to the start of a process; nothing when there is none.
started_at() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    stat=${stat##*) }
    # shellcheck disable=SC2086 # it is fields
    set -- $stat
    [ "$1" = Z ] || printf '%s' "${20}"
}

# The number of the service that these scripts started, if it runs: one that only has the number has
# another start.
running() {
    local pid start
    read -r pid start 2>/dev/null <"$pid_file" || return 0
    # One that ended before it was looked at has no start.
    case $pid,$start in
        ,* | *, | *[!0-9,]*) return 0 ;;
    esac
    [ "$(started_at "$pid")" = "$start" ] && printf '%s' "$pid"
    return 0
}

# Whether a process is the program that is installed, started as it would be started now.
is_current() {
    [ "/proc/$1/exe" -ef "$program" ] &&
        cmp -s "/proc/$1/cmdline" <(printf '%s\0' "$program" "${words[@]}")
}

is_healthy() {
    curl --silent --fail --insecure --max-time 3 --output /dev/null "$url/healthz"
}
