#!/bin/sh
# Converts the header and rows of older programs to today's columns. Rows of 20 fields have test_accuracy and
# images_per_s in place of metric, percent, lower_is_better, score, work and work_per_s. Rows of 20 and 24 fields do not
# say what computed them, so their numerics become "not recorded". All other text, and rows of today, stay.
#
#   convert_results.sh [CSV]        CSV: docs/results.csv
set -eu

[ $# -le 1 ] || { echo "usage: convert_results.sh [CSV]" >&2; exit 2; }
table=${1:-$(dirname -- "$0")/../docs/results.csv}
[ -w "$table" ] || { echo "convert_results: cannot write $table" >&2; exit 1; }
converted=$(mktemp)
trap 'rm -f -- "$converted"' EXIT
awk 'BEGIN { FS = OFS = "," }
  NR == 1 {
    sub(/,test_accuracy,images_per_s,/, ",metric,percent,lower_is_better,score,work,work_per_s,")
    if (!/,numerics,/) sub(/,commit,/, ",commit,numerics,")
    print
    next
  }
  NF == 20 { $6 = "accuracy,true,false," $6 ",images" }
  NF == 20 || NF == 24 { $6 = "not recorded," $6 }
  { print }' "$table" >"$converted"
cat -- "$converted" >"$table"
