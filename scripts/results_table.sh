#!/bin/sh
# Prints the rows of a table of results whose names begin with PREFIX as a Markdown table, the largest senders first.
# Rows that differ only in the seed become one, with means and the sample standard deviation of the score, the model's
# first metric on the test set. Overrides that a run shares with the first row are left out. Below the table stand the
# numerics of the rows. Rows of several metrics make no table.
#
#   results_table.sh PREFIX [CSV]        CSV: docs/results.csv
set -eu

[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: results_table.sh PREFIX [CSV]" >&2; exit 2; }
table=${2:-$(dirname -- "$0")/../docs/results.csv}
[ -r "$table" ] || { echo "results_table: cannot read $table" >&2; exit 1; }

awk -F, -v prefix="$1" -v table="$table" '
  function fail(message) {
    print "results_table: " table ": " message | "cat >&2"
    failed = 1
    exit 1
  }
  function size(bytes) {
    if (bytes >= 1e6) return sprintf("%.2f MB", bytes / 1e6)
    return sprintf(bytes >= 1e5 ? "%.0f kB" : "%.1f kB", bytes / 1e3)
  }
  function mean(name) { return sum[group, name] / runs[group] }
  # the printed score of the rows of `group`; a score that is no number is null in the rows, and prints -
  function score(  i, square, scale, unit) {
    if (group in unknown) return "-"
    scale = percent == "true" ? 100 : 1
    unit = percent == "true" ? " %" : ""
    if (runs[group] == 1) return sprintf("%.2f%s", scale * mean("score"), unit)
    for (i = 1; i <= runs[group]; ++i) square += (scores[group, i] - mean("score")) ^ 2
    return sprintf("%.2f ± %.2f%s (%d seeds)", scale * mean("score"), scale * sqrt(square / (runs[group] - 1)), unit, runs[group])
  }
  NR == 1 {
    for (i = 1; i <= NF; ++i) column[names[i] = $i] = i
    columns = NF
    if (!("numerics" in column)) fail("it has the columns of an older program, which scripts/convert_results.sh converts")
    next
  }
  NF != columns {
    fail("row " $1 " has " NF " fields, expected " columns "; scripts/convert_results.sh converts rows of older programs")
  }
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
    task = $column["metric"] " by " $column["work"]
    if (first == "") first = task
    if (task != first)
      fail("rows " prefix "... are of " first " and, " $1 ", of " task ", which one table cannot hold; give a longer prefix")
    metric = $column["metric"]
    percent = $column["percent"]
    lower = $column["lower_is_better"]
    work = $column["work"]
    scores[group, ++runs[group]] = $column["score"]
    if ($column["score"] == "null") unknown[group] = 1
    for (i = 1; i <= NF; ++i) sum[group, names[i]] += $i
    match($column["commit"], /\(.*\)/)
    if (!($column["numerics"] in rows_of)) machines[++kinds] = $column["numerics"]
    rows_of[$column["numerics"]] = rows_of[$column["numerics"]] " " $1
    commit = substr($column["commit"], RSTART + 1, 7)
    if (index(commits[group], commit) == 0) commits[group] = commits[group] (commits[group] == "" ? "" : " ") commit
  }
  END {
    if (failed) exit 1
    if (groups == 0) fail("no row has a name that begins with " prefix)
    printf "| options | test %s%s | sent a step and worker | less than dense | %s/s | encode ms | decode ms | commit |\n",
      metric, lower == "true" ? " (lower is better)" : "", work
    print "| --- | --- | --- | --- | --- | --- | --- | --- |"
    fflush()
    for (row = 1; row <= groups; ++row) {
      group = order[row]
      printf "%d\t| %s | %s | %s | %.1fx | %.0f | %.2f | %.2f | %s |\n", mean("bytes_sent"), options[group], score(),
        size(mean("bytes_sent")), mean("reduction_sent"), mean("work_per_s"), mean("encode_ms"), mean("decode_ms"),
        commits[group] | "sort -k1,1nr -s | cut -f2-"
    }
    close("sort -k1,1nr -s | cut -f2-")
    for (kind = 1; kind <= kinds; ++kind)
      printf "\nComputed with: %s%s\n", machines[kind], kinds == 1 ? "" : " (" substr(rows_of[machines[kind]], 2) ")"
  }' "$table"
