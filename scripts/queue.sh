#!/bin/sh
# Works through a list of training runs at low priority, one at a time, and continues where it was interrupted.
#
#   queue.sh LIST [OVERRIDE...]
#
# LIST has one run a line, "NAME CONFIG OVERRIDE...", and # for comments. A run's directory is runs/NAME; a run that
# stopped continues from its last checkpoint. Each finished run appends a row to docs/results.csv at once, and python3
# draws the picture of the rows again. A name that has a row is not run again. A row's score is the model's first metric
# on the test set; its numerics name the CPU, libraries and threads that computed it. OVERRIDEs (data.path=DIR) go to
# every run. WISP names the program (build/release/wisp). While a file runs/pause exists, no new run starts. Ctrl-C
# first saves a checkpoint of the run.
set -eu

[ $# -ge 1 ] || { echo "usage: queue.sh LIST [OVERRIDE...]" >&2; exit 2; }
list=$(realpath -- "$1")
shift
cd -- "$(dirname -- "$0")/.."
wisp=${WISP:-build/release/wisp}
table=docs/results.csv
figures="steps skipped bytes_raw bytes_encoded bytes_sent bytes_received reduction_encoded reduction_sent compute_ms encode_ms wait_ms wire_ms decode_ms"
header="name,config,overrides,seed,commit,numerics,metric,percent,lower_is_better,score,work,work_per_s,$(echo "$figures" | tr ' ' ',')"

# value KEY: the key's first number or word in a JSON file with one key a line
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" | head -n 1; }

# numerics RUN: the numerics in a run's summary.json as a field, with semicolons for commas
numerics() { sed -n 's/^ *"numerics": "\(.*\)",\{0,1\}$/\1/p' "$1/summary.json" | tr ',' ';'; }

# metric KEY RUN: the key's value for the model's first metric in a run's facts.json
metric() { sed '1,/"metrics": \[/d' "$2/facts.json" | value "$1"; }

# result RUN: the fields of a finished run's row, from the numerics on; fails if one is missing
result() {
  work=$(value work <"$1/facts.json")
  score=$(value "test_$(metric name "$1")" <"$1/summary.json")
  line=$(numerics "$1"),$(metric name "$1"),$(metric percent "$1"),$(metric lower_is_better "$1"),$score,$work
  for figure in "${work}_per_s" $figures; do line=$line,$(value "$figure" <"$1/summary.json"); done
  case ,$line, in *,,*)
    echo "queue: $1: facts.json and summary.json do not give all of $header, only $line" >&2
    return 1
    ;;
  esac
  echo "$line"
}

# low COMMAND...: runs it at the lowest priority, also where the kernel weighs sessions before processes
# (sched_autogroup)
low() {
  # shellcheck disable=SC2016 # for the inner shell
  setsid sh -c '[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup; exec nice -n 19 "$@"' low "$@" &
  run=$!
  trap 'kill "$run" 2>/dev/null; wait "$run"; exit 130' INT TERM
  wait "$run"
}

mkdir -p runs docs
[ -f "$table" ] || echo "$header" >"$table"
other=$(awk -F, -v header="$header" 'NR == 1 ? $0 != header : NF != split(header, names) { print $1; exit }' "$table")
[ -z "$other" ] || {
  echo "queue: $table: the row $other has not the columns $header; scripts/convert_results.sh converts rows of older programs" >&2
  exit 1
}

while read -r name config overrides; do
  case $name in '' | '#'*) continue ;; esac
  case $name$config$overrides in *,*)
    echo "queue: $name: a comma in a name, config or override would end a column of $table; put the list into a config" >&2
    exit 1
    ;;
  esac
  if grep -q "^$name," "$table"; then
    echo "queue: $name is done"
    continue
  fi
  while [ -e runs/pause ]; do sleep 5; done
  how=
  for saved in "runs/$name/checkpoints"/step_*; do [ ! -d "$saved" ] || how=--resume; done
  [ -n "$how" ] || [ ! -d "runs/$name" ] || how=--overwrite
  echo "queue: $name ($config $overrides)"
  # shellcheck disable=SC2086 # overrides are words
  low "$wisp" train "$config" $overrides "$@" --out "runs/$name" $how </dev/null >>"runs/$name.log" 2>&1 || {
    echo "queue: $name failed, see runs/$name.log" >&2
    exit 1
  }
  seed=$(sed -n 's/^seed = \(.*\)$/\1/p' "runs/$name/config.toml")
  result=$(result "runs/$name")
  echo "$name,$config,$overrides,$seed,$(tr ',' ';' <"runs/$name/commit.txt"),$result" >>"$table"
  if command -v python3 >/dev/null; then
    python3 scripts/draw_results.py || echo "queue: the picture of the rows is the old one" >&2
  fi
done <"$list"
