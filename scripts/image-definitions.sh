# What the definitions in images/ say, for scripts that are in the repository's root: scripts/images.sh, which builds
# them without Docker, and scripts/dockerfiles.sh, which builds them with it. Sourced.
# shellcheck shell=bash

# shellcheck source=scripts/debian.sh
. scripts/debian.sh

uncommented() { sed '/^#/d' "$1"; }
parts_of() { uncommented "images/$1/parts.txt"; }

version_of() { # version_of NAME: what downloads.txt has for it
    uncommented images/downloads.txt | awk -v name="$1" '$2 == name { print $3; exit }'
}

# Lines of versions.txt that are about an image, with the versions filled in: how the answer begins, "|", the command.
answers_of() { # answers_of IMAGE
    local part expected command name
    # shellcheck disable=SC2094 # it is only read
    while IFS='|' read -r part expected command; do
        case " base $(parts_of "$1" | paste -s -d ' ') " in *" $part "*) ;; *) continue ;; esac
        while [[ $expected =~ \{([^}]*)\} ]]; do
            name=${BASH_REMATCH[1]}
            expected=${expected/"{$name}"/$(version_of "$name")}
        done
        printf '%s|%s\n' "$expected" "$command"
    done < <(uncommented images/versions.txt | sed 's/  */ /;s/ /|/;s/  \+/|/')
}
