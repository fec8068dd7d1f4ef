#!/bin/sh
# Works through a list of training runs at low priority, one at a time, and goes on where it was interrupted.
#
#   queue.sh LIST [OVERRIDE...]
#
# LIST has one run a line, "NAME CONFIG OVERRIDE...", # for comments. A run's directory is runs/NAME; a run that stopped
# goes on from its last checkpoint. Each finished run appends a row to docs/results.csv at once, the picture of the rows is
# drawn anew (with python3), and a name that has a row is not run again. OVERRIDEs (data.path=DIR) go to every run. WISP names
# the program, build/release/wisp if unset.
# While a file runs/pause exists, no new run starts. Ctrl-C saves a checkpoint of the run first.
set -eu

[ $# -ge 1 ] || { echo "usage: queue.sh LIST [OVERRIDE...]" >&2; exit 2; }
list=$(realpath -- "$1")
shift
cd -- "$(dirname -- "$0")/.."
wisp=${WISP:-build/release/wisp}
table=docs/results.csv
columns="test_accuracy images_per_s steps skipped bytes_raw bytes_encoded bytes_sent bytes_received reduction_encoded reduction_sent compute_ms encode_ms wait_ms wire_ms decode_ms"

# value KEY FILE: a number of a summary.json
value() { sed -n "s/^ *\"$1\": \([^,]*\),\{0,1\}$/\1/p" "$2"; }

# low COMMAND...: at the lowest priority, also where the kernel weighs sessions before processes (sched_autogroup)
low() {
  # shellcheck disable=SC2016 # for the inner shell
  setsid sh -c '[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup; exec nice -n 19 "$@"' low "$@" &
  run=$!
  trap 'kill "$run" 2>/dev/null; wait "$run"; exit 130' INT TERM
  wait "$run"
}

mkdir -p runs docs
[ -f "$table" ] || echo "name,config,overrides,seed,commit,$(echo "$columns" | tr ' ' ',')" >"$table"

while read -r name config overrides; do
  case $name in '' | '#'*) continue ;; esac
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
  summary=runs/$name/summary.json
  seed=$(sed -n 's/^seed = \(.*\)$/\1/p' "runs/$name/config.toml")
  row="$name,$config,$overrides,$seed,$(tr ',' ';' <"runs/$name/commit.txt")"
  for column in $columns; do row="$row,$(value "$column" "$summary")"; done
  echo "$row" >>"$table"
  if command -v python3 >/dev/null; then
    python3 scripts/draw_results.py || echo "queue: the picture of the rows is the old one" >&2
  fi
done <"$list"
