#!/bin/sh
# Prints the rows of docs/results.csv whose names begin with PREFIX as a Markdown table, those that send most first. What a
# run's overrides have in common with the first row's is left out.
#
#   results_table.sh PREFIX
set -eu

[ $# -eq 1 ] || { echo "usage: results_table.sh PREFIX" >&2; exit 2; }
cd -- "$(dirname -- "$0")/.."

echo "| options | test accuracy | sent a step and worker | less than dense | images/s | encode ms | decode ms | commit |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
awk -F, -v prefix="$1" '
  function size(bytes) {
    if (bytes >= 1e6) return sprintf("%.2f MB", bytes / 1e6)
    return sprintf(bytes >= 1e5 ? "%.0f kB" : "%.1f kB", bytes / 1e3)
  }
  NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
  index($1, prefix) != 1 { next }
  {
    options = ""
    count = split($column["overrides"], words, " ")
    for (i = 1; i <= count; ++i) {
      if (rows == 0 && words[i] !~ /method=/) common[words[i]] = 1
      if (words[i] in common) continue
      sub(/^compression\./, "", words[i])
      sub(/^method=/, "", words[i])
      options = options (options == "" ? "" : " ") "`" words[i] "`"
    }
    ++rows
    match($column["commit"], /\(.*\)/)
    printf "%d\t| %s | %.2f %% | %s | %.1fx | %.0f | %.2f | %.2f | %.7s |\n", $column["bytes_sent"], options,
      100 * $column["test_accuracy"], size($column["bytes_sent"]), $column["reduction_sent"], $column["images_per_s"],
      $column["encode_ms"], $column["decode_ms"], substr($column["commit"], RSTART + 1)
  }' docs/results.csv | sort -t "$(printf '\t')" -k1,1nr -s | cut -f2-
