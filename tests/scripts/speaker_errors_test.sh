#!/bin/sh
# Tests scripts/speaker_errors.py: its intervals, and the figures of docs/results.md.
#
#   speaker_errors_test.sh ROOT PYTHON
set -eu

root=$1
python=$2
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failed=0

fail() {
  echo "speaker_errors_test: $1" >&2
  failed=1
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

# Each speaker has 10 words. The errors of the two ways differ by 2 for anna and for ben, so any draw of
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

exit "$failed"
