#!/usr/bin/env bash
# Counts the instructions of hot paths with valgrind and compares them with committed counts. A
# busy machine does not change them, so unlike a time a count can fail a build.
#
#   scripts/count-instructions.sh           compare with crates/bench/instructions.txt
#   scripts/count-instructions.sh --bless   write that file anew
#   … counted_decide                        only this one
#
# What is counted are the functions called counted_… of the tests named below, in a release build,
# with all that they call and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly COUNTS=crates/bench/instructions.txt
readonly TOLERANCE_PERCENT=5

# function | package | where its test is | the test's name
readonly WORK='
counted_journal|sandbank-runner|--bins|commands::journal::instructions::a_reader_who_keeps_up_sees_every_frame_of_the_counted_work
counted_decide|sandbank-orchestrator|--lib|lifecycle::instructions::a_sandbox_that_is_used_lives_through_the_counted_work
counted_channel|sandbank-channel|--test=instructions|every_byte_of_the_counted_work_comes_through_the_channel
counted_ndjson_text|sandbank-server|--lib|ndjson::instructions::the_counted_work_ends_with_the_last_record_as_text
counted_ndjson_base64|sandbank-server|--lib|ndjson::instructions::the_counted_work_ends_with_the_last_record_as_base64
'

fail() {
    printf 'instructions: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

bless=no
only=()
for argument in "$@"; do
    case "$argument" in
        --bless) bless=yes ;;
        counted_*)
            [[ $WORK == *$'\n'"$argument|"* ]] || fail "$argument is not counted" "see the list in $0"
            only+=("$argument")
            ;;
        *) fail "unknown option $argument" "use --bless, or the name of a counted function" ;;
    esac
done

is_wanted() {
    local name
    [ "${#only[@]}" -gt 0 ] || return 0
    for name in "${only[@]}"; do
        [ "$name" != "$1" ] || return 0
    done
    return 1
}

# Counts of another compiler or processor family are other counts, not worse ones.
circumstances() {
    local vectors=""
    grep -q -m1 -w avx2 /proc/cpuinfo 2>/dev/null && vectors=" avx2"
    echo "# $(rustc --version), $(uname -m)$vectors"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

executable() { # executable <package> <target>: builds the tests and prints their program
    local log="$scratch/build.log"
    cargo test --release --locked --no-run --package "$1" "$2" 2>"$log" || {
        cat "$log" >&2
        fail "the tests of $1 do not build" "the compiler's message is above"
    }
    sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$log" | head -n 1
}

count() { # count <function> <program> <test>
    valgrind --tool=callgrind --callgrind-out-file="$scratch/counts" --collect-atstart=no \
        --toggle-collect="*$1*" "$2" --exact "$3" --test-threads=1 >"$scratch/run.log" 2>&1 || {
        tail -n 20 "$scratch/run.log" >&2
        fail "$3 fails under valgrind" "run it without: cargo test $3"
    }
    sed -n 's/^\(totals\|summary\): \([0-9]*\)$/\2/p' "$scratch/counts" | head -n 1
}

here=$(circumstances)
there=$(head -n 1 "$COUNTS" 2>/dev/null || true)
failed=0
{
    echo "$here"
    echo "# Written by make instructions ARGS=--bless"
} >"$scratch/new"
while IFS='|' read -r function package target test; do
    [ -n "$function" ] || continue
    committed=$(sed -n "s/^$function \([0-9]*\)$/\1/p" "$COUNTS" 2>/dev/null || true)
    if ! is_wanted "$function"; then
        [ -z "$committed" ] || [ "$here" != "$there" ] || echo "$function $committed" >>"$scratch/new"
        continue
    fi
    echo "instructions: building the tests of $package" >&2
    program=$(executable "$package" "$target" </dev/null)
    counted=$(count "$function" "$program" "$test" </dev/null)
    [ "${counted:-0}" -gt 0 ] ||
        fail "nothing was counted in $function" "is it still called, and not inlined, in $test?"
    echo "$function $counted" >>"$scratch/new"
    if [ -z "$committed" ]; then
        echo "$function: $counted, with nothing to compare with"
        [ "$bless" = yes ] || failed=1
        continue
    fi
    difference=$(((counted - committed) * 1000 / committed))
    printf '%s: %d, committed %d, %+d.%d %%\n' "$function" "$counted" "$committed" \
        $((difference / 10)) $((${difference#-} % 10))
    if [ "${difference#-}" -gt $((TOLERANCE_PERCENT * 10)) ]; then
        failed=1
    fi
done <<<"$WORK"

if [ "$bless" = yes ]; then
    cp "$scratch/new" "$COUNTS"
    echo "instructions: written to $COUNTS"
elif [ -n "$there" ] && [ "$here" != "$there" ]; then
    echo "skipped: the committed counts are of${there#\#}, this is${here#\#}: nothing is compared"
elif [ "$failed" = 1 ]; then
    fail "a count differs by more than $TOLERANCE_PERCENT %" \
        "fewer is good news, more needs a reason; then: make instructions ARGS=--bless"
fi
