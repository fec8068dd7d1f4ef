#!/bin/sh
# Runs the fuzz targets of tests/fuzz under libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer; on Debian 12 it
# installs clang 16 and its libraries first.
#
#   fuzz.sh [SECONDS] [NAME...]
#
# Each target, or each NAME (config, payload, ...), runs for SECONDS (60) on the corpus build/fuzz/corpus/NAME, which
# grows from run to run. Prints how many inputs ran, how many a second, and the coverage counters reached. A failing
# input is kept in build/fuzz/findings; build/fuzz/tests/fuzz/fuzz_NAME FILE repeats it.
set -eu

cd -- "$(dirname -- "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- arpa checkpoint cifar10 config facts manifest metrics npy payload photo photo_sets safetensors \
  summary trace utterances
export OMP_NUM_THREADS=1

scripts/install_packages.sh --fuzz
cmake --preset fuzz
# shellcheck disable=SC2046 # a word for each target
cmake --build --preset fuzz --target $(printf 'fuzz_%s ' "$@")

mkdir -p build/fuzz/findings
findings=0
for name in "$@"; do
  mkdir -p "build/fuzz/corpus/$name"
  log=build/fuzz/$name.log
  status=0
  "build/fuzz/tests/fuzz/fuzz_$name" "build/fuzz/corpus/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
    -max_len=65536 -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$name-" >"$log" 2>&1 || status=$?
  awk -v name="$name" -v status="$status" '
    /^stat::number_of_executed_units:/ { runs = $2 }
    /^stat::average_exec_per_sec:/ { speed = $2 }
    / cov: / { for (i = 1; i < NF; ++i) { if ($i == "cov:") edges = $(i + 1); if ($i == "ft:") features = $(i + 1) } }
    END { printf "%-12s %9d inputs, %6d a second, %5d edges, %6d features: %s\n", name, runs, speed, edges, features,
      status == 0 ? "no finding" : "FINDING" }' "$log"
  if [ "$status" -ne 0 ]; then
    findings=$((findings + 1))
    tail -n 40 "$log" >&2
  fi
done
[ "$findings" -eq 0 ]
