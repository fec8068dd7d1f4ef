#!/bin/sh
# Rewrites header and rows that older programs wrote, with test_accuracy and images_per_s, in the columns of today: metric,
# percent, lower_is_better, score, work and work_per_s stand in their place. All other text, and rows of today, stay.
#
#   convert_results.sh [CSV]        CSV: docs/results.csv
set -eu

[ $# -le 1 ] || { echo "usage: convert_results.sh [CSV]" >&2; exit 2; }
table=${1:-$(dirname -- "$0")/../docs/results.csv}
[ -w "$table" ] || { echo "convert_results: cannot write $table" >&2; exit 1; }
# the sixth field of an old row is the accuracy, a number; of a row of today, the metric's name
sed -i -E -e '1s/,test_accuracy,images_per_s,/,metric,percent,lower_is_better,score,work,work_per_s,/' \
  -e 's/^(([^,]*,){5})([0-9][^,]*),/\1accuracy,true,false,\3,images,/' "$table"
