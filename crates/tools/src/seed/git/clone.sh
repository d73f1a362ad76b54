# Clones into a draft and moves it into place, so that the workspace has all of it or nothing. A move that
# was interrupted is finished by the next run. A failure is git's own exit code.
set -u
top=.remcochat marker=.remcochat/seeded_git draft=.remcochat/seed_draft moving=.remcochat/seed_moving

move_into_place() {
  local entry
  # The repository's own would come first in every search for a program.
  rm -rf -- "$draft/$top" || return
  for entry in "$draft"/.[!.]* "$draft"/..?* "$draft"/*; do
    if [ -e "$entry" ] || [ -L "$entry" ]; then
      mv -f -- "$entry" . || return
    fi
  done
  rmdir -- "$draft" && : > "$marker" && rm -f -- "$moving"
}

[ ! -e "$marker" ] || exit 0
if [ -e "$moving" ] && [ -d "$draft" ]; then
  move_into_place
  exit
fi
rm -rf -- "$draft" "$moving" || exit
for entry in .[!.]* ..?* *; do
  if { [ -e "$entry" ] || [ -L "$entry" ]; } && [ "$entry" != "$top" ]; then
    mkdir -p -- "$top" && : > "$marker"
    exit
  fi
done
mkdir -p -- "$top" || exit
if ! command -v git > /dev/null; then
  echo 'there is no git in the image of the sandbox' >&2
  exit 127
fi

unset "${!GIT_@}" SSH_ASKPASS
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null GIT_ALLOW_PROTOCOL="$seed_protocols" GIT_LFS_SKIP_SMUDGE=1
export GIT_SSH_COMMAND='ssh -o BatchMode=yes' LC_ALL=C

# Every setting that could have git run something is overridden. Settings before the verb are kept nowhere.
safe_git() {
  local settings=(
    -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.askPass= -c credential.helper=
    -c protocol.ext.allow=never -c submodule.recurse=false -c fetch.recurseSubmodules=false
    -c gc.auto=0 -c maintenance.auto=false -c init.templateDir= -c advice.detachedHead=false
    -c init.defaultBranch=main
  )
  if [ -n "$seed_host" ]; then
    settings+=(-c "credential.$seed_host.helper=!seed() { test \"\$1\" = get && printf 'username=%s\npassword=%s\n' \"\$SANDBANK_SEED_USER\" \"\$SANDBANK_SEED_PASSWORD\"; }; seed")
  fi
  git "${settings[@]}" "$@"
}

depth=()
[ -z "$seed_depth" ] || depth=(--depth "$seed_depth")

fetch_hash() {
  safe_git init --quiet -- "$draft" &&
    safe_git -C "$draft" remote add -- origin "$seed_url" &&
    { safe_git -C "$draft" fetch --progress "${depth[@]}" -- origin "$seed_revision" ||
      safe_git -C "$draft" fetch --progress -- origin; } &&
    safe_git -C "$draft" checkout --quiet --detach "$seed_revision" --
}

clone() {
  case $seed_how in
    default) safe_git clone --progress --no-recurse-submodules "${depth[@]}" -- "$seed_url" "$draft" ;;
    name) safe_git clone --progress --no-recurse-submodules "${depth[@]}" --branch "$seed_revision" -- "$seed_url" "$draft" ;;
    short) safe_git clone --progress --no-recurse-submodules "${depth[@]}" --branch "$seed_revision" -- "$seed_url" "$draft" 2> /dev/null || {
      safe_git clone --progress --no-recurse-submodules --no-checkout -- "$seed_url" "$draft" &&
        safe_git -C "$draft" checkout --quiet --detach "$seed_revision" --
    } ;;
    hash) fetch_hash ;;
  esac
}

submodules() {
  [ -z "$seed_submodules" ] || safe_git -C "$draft" submodule update --init --recursive "${depth[@]}"
}

clone && submodules
code=$?
if [ "$code" -ne 0 ]; then
  rm -rf -- "$draft"
  exit "$code"
fi
: > "$moving" && move_into_place
