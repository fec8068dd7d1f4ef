#!/bin/sh
# Tests the queue's rows, their table and their picture. Rows that differ only in the seed become one. Nothing mixes
# metrics or the columns of programs. The committed files are those that docs/results.csv gives.
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

# row NAME OVERRIDES SEED SCORE BYTES COMMIT [METRIC [NUMERICS]]       METRIC: accuracy,true,false; NUMERICS: CPU
row() {
  echo "$1,c.toml,$2,$3,0.1.0 ($6),${8:-CPU},${7:-accuracy,true,false},$4,images,100.0,10,0,1000.0,$5,$5,$5,1.0,$5,1.0,0.25,1.0,1.0,0.5"
}
# expect LINE FILE: FILE has this line
expect() {
  grep -qFx -e "$1" "$2" || fail "expected '$1', got: $(cat "$2")"
}
# refused WORDS COMMAND...: the command fails and says WORDS
refused() {
  words=$1
  shift
  ! "$@" >"$work/said" 2>&1 || fail "$* did not fail"
  grep -qF -e "$words" "$work/said" || fail "expected '$words', got: $(cat "$work/said")"
}

{
  head -n 1 "$root/docs/results.csv"
  row m10-none 'train.epochs=10 compression.method=none' 1 0.85 2000000.0 aaaaaaaaaaaa
  row m10-topk 'train.epochs=10 compression.method=topk compression.ratio=0.1' 1 0.5 200000.0 bbbbbbbbbbbb
  row m10-fft 'train.epochs=10 compression.method=fft' 1 0.83 300000.0 aaaaaaaaaaaa
  row r10-none-s1 'train.epochs=10 compression.method=none seed=1' 1 0.86 2000000.0 bbbbbbbbbbbb
  row r10-none-s2 'train.epochs=10 compression.method=none seed=2' 2 0.88 2000000.0 bbbbbbbbbbbb
  row r10-none-s3 'train.epochs=10 compression.method=none seed=3' 3 0.87 2000000.0 bbbbbbbbbbbb
  row r10-qsgd-s1 'train.epochs=10 compression.method=qsgd seed=1' 1 0.84 400000.0 bbbbbbbbbbbb
  row r10-qsgd-s2 'train.epochs=10 compression.method=qsgd seed=2' 2 0.85 500000.0 bbbbbbbbbbbb
  row dgc-30 'compression.method=dgc' 1 0.9 50000.0 aaaaaaaaaaaa
} >"$work/results.csv"

"$root/scripts/results_table.sh" r10 "$work/results.csv" >"$work/table"
[ "$(wc -l <"$work/table")" -eq 6 ] || fail "a table of two methods has four lines, and two below, not: $(cat "$work/table")"
[ "$(tail -n 1 "$work/table")" = 'Computed with: CPU' ] || fail "the last line does not tell the CPU: $(cat "$work/table")"
expect "| \`none\` | 87.00 ± 1.00 % (3 seeds) | 2.00 MB | 2000000.0x | 100 | 0.25 | 0.50 | bbbbbbb |" "$work/table"
expect "| \`qsgd\` | 84.50 ± 0.71 % (2 seeds) | 450 kB | 450000.0x | 100 | 0.25 | 0.50 | bbbbbbb |" "$work/table"
"$root/scripts/results_table.sh" m10 "$work/results.csv" >"$work/table"
expect "| \`topk\` \`ratio=0.1\` | 50.00 % | 200 kB | 200000.0x | 100 | 0.25 | 0.50 | bbbbbbb |" "$work/table"

# rows of two machines are told apart below the table
{
  cat "$work/results.csv"
  row r10-none-s4 'train.epochs=10 compression.method=none seed=4' 4 0.87 2000000.0 bbbbbbbbbbbb accuracy,true,false 'CPU 2; 1 threads'
} >"$work/machines.csv"
"$root/scripts/results_table.sh" r10 "$work/machines.csv" >"$work/table"
expect 'Computed with: CPU (r10-none-s1 r10-none-s2 r10-none-s3 r10-qsgd-s1 r10-qsgd-s2)' "$work/table"
expect 'Computed with: CPU 2; 1 threads (r10-none-s4)' "$work/table"

# another metric: plain numbers, its direction in the header, no table with rows of accuracy
words=perplexity,false,true
{
  cat "$work/results.csv"
  row text-none-s1 'compression.method=none seed=1' 1 80.25 2000000.0 aaaaaaaaaaaa "$words" | sed 's/,images,/,tokens,/'
  row text-none-s2 'compression.method=none seed=2' 2 81.25 2000000.0 aaaaaaaaaaaa "$words" | sed 's/,images,/,tokens,/'
  row text-topk 'compression.method=topk' 1 null 200000.0 aaaaaaaaaaaa "$words" | sed 's/,images,/,tokens,/'
  row textile 'compression.method=none' 1 0.5 2000000.0 aaaaaaaaaaaa
} >"$work/tasks.csv"
"$root/scripts/results_table.sh" text- "$work/tasks.csv" >"$work/table"
expect "| options | test perplexity (lower is better) | sent a step and worker | less than dense | tokens/s | encode ms | decode ms | commit |" \
  "$work/table"
expect "| \`none\` | 80.75 ± 0.71 (2 seeds) | 2.00 MB | 2000000.0x | 100 | 0.25 | 0.50 | aaaaaaa |" "$work/table"
expect "| \`topk\` | - | 200 kB | 200000.0x | 100 | 0.25 | 0.50 | aaaaaaa |" "$work/table"
refused 'are of perplexity by tokens and, textile, of accuracy by images' "$root/scripts/results_table.sh" text "$work/tasks.csv"
refused 'no row has a name that begins with other' "$root/scripts/results_table.sh" other "$work/tasks.csv"

# a row of an older program
old='old,c.toml,compression.method=none,1,0.1.0 (aaaaaaaaaaaa),0.8471,523.3705621976806,10,0,1000.0,1.0,2.0,3.0,1.0,4.0,1.0,0.25,1.0,1.0,0.5'
{
  echo name,config,overrides,seed,commit,test_accuracy,images_per_s,steps,skipped,bytes_raw,bytes_encoded,bytes_sent,bytes_received,reduction_encoded,reduction_sent,compute_ms,encode_ms,wait_ms,wire_ms,decode_ms
  echo "$old"
} >"$work/old.csv"
refused 'scripts/convert_results.sh converts' "$root/scripts/results_table.sh" old "$work/old.csv"
{ head -n 1 "$root/docs/results.csv"; echo "$old"; } >"$work/mixed.csv"
refused 'row old has 20 fields, expected 25; scripts/convert_results.sh' "$root/scripts/results_table.sh" old "$work/mixed.csv"
{
  head -n 1 "$root/docs/results.csv"
  echo 'old,c.toml,compression.method=none,1,0.1.0 (aaaaaaaaaaaa),not recorded,accuracy,true,false,0.8471,images,523.3705621976806,10,0,1000.0,1.0,2.0,3.0,1.0,4.0,1.0,0.25,1.0,1.0,0.5'
} >"$work/converted.csv"
# rows of the program in between, with a metric but no numerics
sed 's/,numerics,/,/; s/,not recorded,/,/' "$work/converted.csv" >"$work/between.csv"
refused 'scripts/convert_results.sh converts' "$root/scripts/results_table.sh" old "$work/between.csv"
for table in old mixed mixed between; do
  "$root/scripts/convert_results.sh" "$work/$table.csv"
  cmp -s "$work/$table.csv" "$work/converted.csv" || fail "$table.csv was converted to: $(cat "$work/$table.csv")"
done

# the queue, with a stand-in for the program that has trained a model of text
mkdir -p "$work/tree/scripts" "$work/tree/docs"
cp "$root/scripts/queue.sh" "$work/tree/scripts"
cat >"$work/wisp" <<'END'
#!/bin/sh
while [ "$1" != --out ]; do shift; done
mkdir "$2"
echo 'seed = 7' >"$2/config.toml"
echo '0.1.0 (aaaaaaaaaaaa, edited)' >"$2/commit.txt"
cat >"$2/facts.json" <<'JSON'
{
  "inputs": [
    {
      "name": "characters",
      "sample": [],
      "dtype": "i32"
    }
  ],
  "classes": 2,
  "names": [
    "a",
    ","
  ],
  "work": "tokens",
  "metrics": [
    {
      "name": "bits",
      "percent": false,
      "lower_is_better": true
    },
    {
      "name": "accuracy",
      "percent": true,
      "lower_is_better": false
    }
  ],
  "validation": false
}
JSON
cat >"$2/summary.json" <<'JSON'
{
  "test_bits": 2.25,
  "test_accuracy": 0.5,
  "tokens_per_s": 1234.5,
  "steps": 10,
  "skipped": 0,
  "bytes_raw": 1000.0,
  "bytes_encoded": 1.0,
  "bytes_sent": 2.0,
  "bytes_received": 3.0,
  "reduction_encoded": 4.0,
  "reduction_sent": 5.0,
  "loader_ms": 0.125,
  "compute_ms": 6.0,
  "encode_ms": 7.0,
  "wait_ms": 8.0,
  "wire_ms": 9.0,
  "decode_ms": 10.0,
  "numerics": "library 1.2, 4 threads, A CPU @ 2 GHz",
  "bottleneck": "bottleneck: none"
}
JSON
END
chmod +x "$work/wisp"
queue() { WISP="$work/wisp" "$work/tree/scripts/queue.sh" "$work/list"; }
echo 'chars c.toml compression.method=none seed=7' >"$work/list"
queue >"$work/said" 2>&1 || fail "$(cat "$work/said")"
[ "$(head -n 1 "$work/tree/docs/results.csv")" = "$(head -n 1 "$root/docs/results.csv")" ] || fail "the queue writes other columns"
expect 'chars,c.toml,compression.method=none seed=7,7,0.1.0 (aaaaaaaaaaaa; edited),library 1.2; 4 threads; A CPU @ 2 GHz,bits,false,true,2.25,tokens,1234.5,10,0,1000.0,1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,10.0' \
  "$work/tree/docs/results.csv"
echo 'lists c.toml model.hidden=[24,24]' >"$work/list"
refused 'queue: lists: a comma' queue
sed -i '/tokens_per_s/d' "$work/wisp"
echo 'short c.toml' >"$work/list"
refused 'do not give all of' queue
! grep -q '^short' "$work/tree/docs/results.csv" || fail "a row without a figure was written"
echo "$old" >>"$work/tree/docs/results.csv"
refused 'the row old has not the columns' queue

if [ -z "$python" ]; then
  echo "results_test: no python3: scripts/draw_results.py did not run"
  exit "$failed"
fi

draw() { "$python" "$root/scripts/draw_results.py" --csv "$work/results.csv" --svg "$work/picture.svg" "$@"; }
draw >"$work/said"
expect 'draw_results: left out, as they do not compare: m10-none m10-fft' "$work/said"
draw --check || fail "a picture is not accepted by the rows that it was drawn from"
for words in '>dense: 87.00 %, 2 MB<' '>qsgd: 84.50 ± 0.71 %, 450 kB<' '>topk: 50.0 %<' '>topk: 50.00 %, 200 kB<' \
  '>filled: mean of 2 or 3 seeds ± standard deviation; hollow: a single run; triangles: below the axis<' \
  '>program 0.1.0 (bbbbbbbbbbbb), computed with: CPU<'; do
  grep -qF -e "$words" "$work/picture.svg" || fail "the picture has no '$words'"
done
! grep -qF -e dgc -e fft -e 85.00 "$work/picture.svg" || fail "the picture shows a run that it should not"
# a dense point of one program or machine beside methods of another would flatter or belittle them
cp "$work/results.csv" "$work/all.csv"
{
  row r10-terngrad-s1 'train.epochs=10 compression.method=terngrad seed=1' 1 0.8 100000.0 cccccccccccc
  row r10-int8-s1 'train.epochs=10 compression.method=int8 seed=1' 1 0.8 100000.0 bbbbbbbbbbbb accuracy,true,false 'CPU 2'
} >>"$work/results.csv"
draw --check || fail "rows of another program or CPU change the picture"
grep -vE '^(m10|r10)-none' "$work/all.csv" >"$work/results.csv"
refused 'has a dense one (METHOD none) of the same config, commit and numerics beside it' draw
cp "$work/all.csv" "$work/results.csv"
sed -i '/^r10-qsgd-s1/d' "$work/results.csv"
! draw --check 2>/dev/null || fail "a picture is accepted by other rows than it was drawn from"
row r10-none-s4 'train.epochs=10 optimizer.lr=1 compression.method=none seed=4' 4 0.9 2000000.0 bbbbbbbbbbbb >>"$work/results.csv"
refused 'r10-none differ in more than the seed' draw
row m10-text train.epochs=10 1 2.25 2000000.0 aaaaaaaaaaaa bits,false,true | cat "$root/docs/results.csv" - >"$work/results.csv"
refused 'the row m10-text has a bits of 2.25; the picture is of accuracies' draw
echo "$old" | cat "$root/docs/results.csv" - >"$work/results.csv"
refused 'the row old has not 25 fields; scripts/convert_results.sh' draw

# speakers: each speaker has 10 words. The errors of the two ways differ by 2 for anna and for ben, so any draw of
# speakers alone differs by 2 in 10. The seeds of either way differ by 1 in 10, so draws go from 10 to 30 points, a
# sixteenth of them to each end. Welch: two degrees of freedom, t = 4.3027, times the root of 25 + 25.
speakers() { "$python" "$root/scripts/speaker_errors.py" --csv "$work/speakers.csv" "$@"; }
evaluation() {
  counts='"utterances": 1, "words": 10, "word_edits": %d, "characters": 40, "character_edits": 9'
  # shellcheck disable=SC2059 # the counts are the format
  printf "{\"decoded\": [{\"way\": \"best path\", \"speakers\": {\"anna\": {$counts}, \"ben\": {$counts}}}]}" "$1" "$2"
}
evaluation 1 3 | speakers add dense-s1
evaluation 2 4 | speakers add dense-s2
evaluation 3 5 | speakers add sparse-s1
evaluation 4 6 | speakers add sparse-s2
speakers compare dense sparse >"$work/difference"
expect 'dense: 25.00 % of the words wrong, 2 speakers, 2 seeds (20.00, 30.00)' "$work/difference"
expect 'difference +20.00 points' "$work/difference"
expect '-10.42 to +50.42: 95 % by the seeds (Welch, 2.00 degrees of freedom)' "$work/difference"
expect '+10.00 to +30.00: 95 % of the draws of seeds and speakers' "$work/difference"
evaluation 4 9 | speakers add odd-s1
speakers compare dense odd >"$work/difference"
expect 'odd: 65.00 % of the words wrong, 2 speakers, 1 seed (65.00)' "$work/difference"
grep -qF '95 % of the draws of speakers, by these models; a way with one seed tells nothing of others' "$work/difference" ||
  fail "one seed is taken for many: $(cat "$work/difference")"
! grep -qF Welch "$work/difference" || fail "one seed has no spread: $(cat "$work/difference")"
# the figures of docs/results.md, which scipy.stats.ttest_ind gives too
"$python" "$root/scripts/speaker_errors.py" compare an4-none an4-dgc >"$work/difference"
expect 'difference +0.52 points' "$work/difference"
expect '-6.08 to +7.12: 95 % by the seeds (Welch, 3.98 degrees of freedom)' "$work/difference"
expect '-4.08 to +5.17: 95 % of the draws of seeds and speakers' "$work/difference"
evaluation 1 3 | refused 'dense-s1 is there already' speakers add dense-s1
echo '{}' | refused 'the evaluation has no speakers' speakers add dense-s3
refused 'no run dence-sSEED' speakers compare dence sparse

"$python" "$root/scripts/draw_results.py" --check || failed=1
exit "$failed"
