#!/bin/sh
# The table and the picture of results: rows that differ in the seed alone become one; what is committed is what
# docs/results.csv gives.
#
#   results_test.sh ROOT [PYTHON]        without PYTHON the picture is not looked at
set -eu

root=$1
python=${2:-}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failed=0

fail() {
  echo "results_test: $1" >&2
  failed=1
}

# row NAME OVERRIDES SEED ACCURACY BYTES COMMIT
row() {
  echo "$1,c.toml,$2,$3,0.1.0 ($6),$4,100.0,10,0,1000.0,$5,$5,$5,1.0,$5,1.0,0.25,1.0,1.0,0.5"
}
# expect LINE FILE: FILE has this line
expect() {
  grep -qFx -e "$1" "$2" || fail "expected '$1', got: $(cat "$2")"
}

{
  head -n 1 "$root/docs/results.csv"
  row m10-none 'train.epochs=10 compression.method=none' 1 0.85 2000000.0 aaaaaaaaaaaa
  row m10-topk 'train.epochs=10 compression.method=topk compression.ratio=0.1' 1 0.5 200000.0 aaaaaaaaaaaa
  row r10-none-s1 'train.epochs=10 compression.method=none seed=1' 1 0.86 2000000.0 bbbbbbbbbbbb
  row r10-none-s2 'train.epochs=10 compression.method=none seed=2' 2 0.88 2000000.0 bbbbbbbbbbbb
  row r10-none-s3 'train.epochs=10 compression.method=none seed=3' 3 0.87 2000000.0 bbbbbbbbbbbb
  row r10-qsgd-s1 'train.epochs=10 compression.method=qsgd seed=1' 1 0.84 400000.0 bbbbbbbbbbbb
  row r10-qsgd-s2 'train.epochs=10 compression.method=qsgd seed=2' 2 0.85 500000.0 bbbbbbbbbbbb
  row dgc-30 'compression.method=dgc' 1 0.9 50000.0 aaaaaaaaaaaa
} >"$work/results.csv"

"$root/scripts/results_table.sh" r10 "$work/results.csv" >"$work/table"
[ "$(wc -l <"$work/table")" -eq 4 ] || fail "a table of two methods has four lines, not: $(cat "$work/table")"
expect "| \`none\` | 87.00 ± 1.00 % (3 seeds) | 2.00 MB | 2000000.0x | 100 | 0.25 | 0.50 | bbbbbbb |" "$work/table"
expect "| \`qsgd\` | 84.50 ± 0.71 % (2 seeds) | 450 kB | 450000.0x | 100 | 0.25 | 0.50 | bbbbbbb |" "$work/table"
"$root/scripts/results_table.sh" m10 "$work/results.csv" >"$work/table"
expect "| \`topk\` \`ratio=0.1\` | 50.00 % | 200 kB | 200000.0x | 100 | 0.25 | 0.50 | aaaaaaa |" "$work/table"

if [ -z "$python" ]; then
  echo "results_test: no python3: scripts/draw_results.py did not run"
  exit "$failed"
fi

draw() { "$python" "$root/scripts/draw_results.py" --csv "$work/results.csv" --svg "$work/picture.svg" "$@"; }
draw
draw --check || fail "a picture is not accepted by the rows that it was drawn from"
for words in '>dense: 87.00 %, 2 MB<' '>qsgd: 84.50 ± 0.71 %, 450 kB<' '>topk: 50.0 %<' '>topk: 50.00 %, 200 kB<' \
  '>filled: mean of 2 or 3 seeds ± standard deviation; hollow: a single run; triangles: below the axis<'; do
  grep -qF -e "$words" "$work/picture.svg" || fail "the picture has no '$words'"
done
! grep -qF -e dgc -e 85.00 "$work/picture.svg" || fail "the picture shows a run that it should not"
sed -i '/^r10-qsgd-s1/d' "$work/results.csv"
! draw --check 2>/dev/null || fail "a picture is accepted by other rows than it was drawn from"
row r10-none-s4 'train.epochs=10 compression.method=none seed=4' 4 0.9 2000000.0 cccccccccccc >>"$work/results.csv"
! draw 2>"$work/error" || fail "rows of two commits became one point"
grep -qF 'r10-none differ in more than the seed' "$work/error" || fail "$(cat "$work/error")"

"$python" "$root/scripts/draw_results.py" --check || failed=1
exit "$failed"
