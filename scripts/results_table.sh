#!/bin/sh
# Prints the rows of a table of results whose names begin with PREFIX as a Markdown table, those that send most first. Rows
# that differ in the seed alone become one, with means, and the sample standard deviation of the accuracy. What a run's
# overrides have in common with the first row's is left out.
#
#   results_table.sh PREFIX [CSV]        CSV: docs/results.csv
set -eu

[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: results_table.sh PREFIX [CSV]" >&2; exit 2; }
table=${2:-$(dirname -- "$0")/../docs/results.csv}
[ -r "$table" ] || { echo "results_table: cannot read $table" >&2; exit 1; }

echo "| options | test accuracy | sent a step and worker | less than dense | images/s | encode ms | decode ms | commit |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
awk -F, -v prefix="$1" '
  function size(bytes) {
    if (bytes >= 1e6) return sprintf("%.2f MB", bytes / 1e6)
    return sprintf(bytes >= 1e5 ? "%.0f kB" : "%.1f kB", bytes / 1e3)
  }
  function mean(name) { return sum[group, name] / runs[group] }
  # in percent, of the rows of `group`
  function accuracy(  i, square) {
    if (runs[group] == 1) return sprintf("%.2f %%", 100 * mean("test_accuracy"))
    for (i = 1; i <= runs[group]; ++i) square += (accuracies[group, i] - mean("test_accuracy")) ^ 2
    return sprintf("%.2f ± %.2f %% (%d seeds)", 100 * mean("test_accuracy"), 100 * sqrt(square / (runs[group] - 1)),
      runs[group])
  }
  NR == 1 { for (i = 1; i <= NF; ++i) column[names[i] = $i] = i; next }
  index($1, prefix) != 1 { next }
  {
    count = split($column["overrides"], words, " ")
    group = $column["config"]
    for (i = 1; i <= count; ++i) if (words[i] !~ /^seed=/) group = group " " words[i]
    if (!(group in runs)) {
      order[++groups] = group
      for (i = 1; i <= count; ++i) {
        if (groups == 1 && words[i] !~ /method=/) common[words[i]] = 1
        if (words[i] in common || words[i] ~ /^seed=/) continue
        sub(/^compression\./, "", words[i])
        sub(/^method=/, "", words[i])
        options[group] = options[group] (options[group] == "" ? "" : " ") "`" words[i] "`"
      }
    }
    accuracies[group, ++runs[group]] = $column["test_accuracy"]
    for (i = 1; i <= NF; ++i) sum[group, names[i]] += $i
    match($column["commit"], /\(.*\)/)
    commit = substr($column["commit"], RSTART + 1, 7)
    if (index(commits[group], commit) == 0) commits[group] = commits[group] (commits[group] == "" ? "" : " ") commit
  }
  END {
    for (row = 1; row <= groups; ++row) {
      group = order[row]
      printf "%d\t| %s | %s | %s | %.1fx | %.0f | %.2f | %.2f | %s |\n", mean("bytes_sent"), options[group], accuracy(),
        size(mean("bytes_sent")), mean("reduction_sent"), mean("images_per_s"), mean("encode_ms"), mean("decode_ms"),
        commits[group]
    }
  }' "$table" | sort -t "$(printf '\t')" -k1,1nr -s | cut -f2-
