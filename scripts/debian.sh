# Debian's mirror, for scripts that are in the repository's root. Sourced.
# shellcheck shell=bash

readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

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
