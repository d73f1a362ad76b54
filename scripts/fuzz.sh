#!/usr/bin/env bash
# Fuzzes every parser of hostile input: each target of fuzz/ for FUZZ_SECONDS (default 30), one
# after the other. FUZZ_TARGETS names some of them instead of all.
#
# This is what cargo-fuzz does without a sanitizer, and works with a stable compiler. New inputs
# stay in .build/fuzz; those in fuzz/corpus are committed and replayed by `make test`. An input
# that fails is written to .build/fuzz/<target>/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-30}
work=$PWD/.build/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')

if ! command -v c++ >/dev/null; then
    echo "fuzz: libFuzzer needs a C++ compiler; install g++" >&2
    exit 1
fi

coverage=(
    --cfg fuzzing
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
    -Ccodegen-units=1
)
RUSTFLAGS="${coverage[*]}" cargo build --locked --release \
    --manifest-path fuzz/Cargo.toml --target "$host" --target-dir "$work/target"

for target in ${FUZZ_TARGETS:-$(cd fuzz/corpus && ls)}; do
    mkdir -p "$work/$target/corpus" "$work/$target/artifacts"
    echo "fuzz: $target for $seconds s"
    log=$work/$target/log
    if ! "$work/target/$host/release/$target" "$work/$target/corpus" "fuzz/corpus/$target" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
        -artifact_prefix="$work/$target/artifacts/" -print_final_stats=1 >"$log" 2>&1; then
        tail -40 "$log" >&2
        echo "fuzz: $target failed; the input is in $work/$target/artifacts" >&2
        exit 1
    fi
    sed -n 's/^stat::number_of_executed_units: */fuzz:   inputs tried: /p' "$log"
done
echo "fuzz: all targets passed"
