#!/usr/bin/env bash
# Says what terminals and chats of this machine's workspace run, and checks that it can be run here: the
# profiles are the control plane's templates, and clients choose among them by name only. Writes
# exec_profiles.env for the control plane's environment. May be run again: what is right stays as it is.
#
#   configure_exec_profiles.sh [--check]       --check writes nothing
#
#   PROFILE_SHELL   the terminal's program and its arguments, words apart by spaces    bash -l
#   PROFILE_CHAT    the same of the agent; empty where there is none                   claude
set -euo pipefail
# shellcheck source=deploy/sandbox/settings.sh
. "$(dirname "$0")/settings.sh"

readonly profiles=$service/exec_profiles.env
# What the runner's commands have, if nothing else is said.
readonly search=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

only_check=
case $#,${1:-} in
    0,) ;;
    1,--check) only_check=yes ;;
    *) die "usage: ${0##*/} [--check]" ;;
esac
[ -d "$root" ] || die "the workspace $root is not there: run deploy_workspace_service.sh first, or set SANDBOX_WORKSPACE_ROOT"
[ -d "$service" ] || die "$service is not there: run deploy_workspace_service.sh first, or set SANDBOX_SERVICE_ROOT"

# Whether a program, or a link on the way to it, lies in the workspace: whoever works there could
# exchange it.
is_in_workspace() {
    local step=$1 inside target
    inside=$(readlink -f "$root")
    while true; do
        step=$(readlink -f "$(dirname "$step")")/${step##*/}
        case $step in
            "$inside"/*) return 0 ;;
        esac
        [ -L "$step" ] || return 1
        target=$(readlink "$step")
        case $target in
            /*) step=$target ;;
            *) step=${step%/*}/$target ;;
        esac
    done
}

# The words of one profile, checked, apart by commas as the control plane's settings have them.
template() {
    local name=$1 variable=$2 text=$3 program place
    local -a list
    case $text in
        *[![:alnum:]\ ._/=:@+-]*)
            die "$variable: only letters, digits, spaces and ._/=:@+- can be used; a profile is a program and its words, not a line for a shell" ;;
    esac
    read -r -a list <<<"$text"
    [ "${#list[@]}" -ge 1 ] || die "$variable: it names no program; leave it out for the default"
    [ "${#list[@]}" -le 32 ] || die "$variable: it has more than 32 words"
    program=${list[0]}
    case $program in
        -*) die "$variable: $program is an option and no program" ;;
        /*) place=$program ;;
        */*) die "$variable: $program is neither a name nor an absolute path" ;;
        *) place=$(PATH=$search command -v "$program") ||
            die "$variable: there is no $program in $search; install it, or name it by its absolute path" ;;
    esac
    if [ ! -f "$place" ] || [ ! -x "$place" ]; then
        die "$variable: $place is not a program"
    fi
    if is_in_workspace "$place"; then
        die "$variable: $place lies in the workspace $root or leads through it; install it elsewhere"
    fi
    # Not what a link leads to: a program may do something else under another name, as rbash does.
    list[0]=$place
    # As it will be run, without asking anything of it.
    say "$name: ${list[*]}" >&2
    local IFS=,
    printf '%s' "${list[*]}"
}

shell=$(template shell PROFILE_SHELL "${PROFILE_SHELL-bash -l}")
lines="SANDBANK_PTY_SHELL_COMMAND=$shell"
if [ -n "${PROFILE_CHAT-claude}" ]; then
    chat=$(template chat PROFILE_CHAT "${PROFILE_CHAT-claude}")
    lines+=$'\n'"SANDBANK_CHAT_COMMAND=$chat"
fi

if [ -f "$profiles" ] && [ "$(cat "$profiles")" = "$lines" ]; then
    say "nothing has changed: $profiles"
    exit 0
fi
[ -z "$only_check" ] || die "$profiles is not what it should be: run ${0##*/} without --check"
umask 077
printf '%s\n' "$lines" >"$profiles.new"
mv "$profiles.new" "$profiles"
say "the profiles were written: $profiles"
say "give these lines to the control plane's environment and start it again"
