# What the definitions in images/ say, for scripts that are in the repository's root: scripts/images.sh, which builds
# them without Docker, and scripts/dockerfiles.sh, which builds them with it. Sourced.
# shellcheck shell=bash

readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

uncommented() { sed '/^#/d' "$1"; }
parts_of() { uncommented "images/$1/parts.txt"; }

# Lines of a sources.list for a suite of Debian, from the sites that apt has for Debian here.
sources() { # sources SUITE
    local label suites site
    for label in Debian Debian-Security; do
        # shellcheck disable=SC2016 # the format is apt's
        site=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
            awk -F '|' -v label="$label" '$1 == "Debian" && $2 == label { print $3; exit }')
        [ -n "$site" ] || continue
        suites="$1 $1-updates"
        [ "$label" = Debian ] || suites="$1-security"
        for suite in $suites; do
            echo "deb [signed-by=$KEYRING] $site $suite main"
        done
    done
}

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
