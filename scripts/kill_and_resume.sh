#!/bin/bash
# Kills a training run with SIGKILL at random moments, saving included, resumes it, and compares its last checkpoint with
# that of an undisturbed run, bit for bit.
#
#   kill_and_resume.sh [TIMES] [SEED] [KEY=VALUE...]
#
# TIMES runs (100) are each killed at random moments until an attempt ends. SEED (1) draws the moments. KEY=VALUE change
# the config of the run, which has two workers, DGC, and a checkpoint after every step. WISP names the program
# (build/release/wisp).
set -euo pipefail

times=${1:-100}
RANDOM=${2:-1}
shift $(($# < 2 ? $# : 2))
wisp=$(realpath "${WISP:-$(dirname -- "${BASH_SOURCE[0]}")/../build/release/wisp}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_WAIT_POLICY=passive

cat >"$work/run.toml" <<'CONFIG'
workers = 2
threads = 1
model.name = "mlp"
model.hidden = [64]
data = { name = "synthetic", train_count = 320, test_count = 64 }
train = { batch = 32, epochs = 4, log_every = 3 }
compression = { method = "dgc", ratio = 0.01, warmup = "list", warmup_epochs = 2.0, warmup_list = [1.0, 0.1] }
checkpoint = { every_steps = 1, keep = 2 }
CONFIG
# fingerprint RUN: checksums of the newest checkpoint's files
fingerprint() { (cd "$1/checkpoints/step_40" && sha256sum -- *); }

begin=${EPOCHREALTIME/./}
"$wisp" train "$work/run.toml" --quiet "$@" --out "$work/whole"
length=$((${EPOCHREALTIME/./} - begin)) # microseconds
fingerprint "$work/whole" >"$work/expected"

resumes=0
saving=0
for ((i = 1; i <= times; ++i)); do
  rm -rf "$work/run"
  while :; do
    if compgen -G "$work/run/checkpoints/step_*" >/dev/null; then resumes=$((resumes + 1)); fi
    # without a checkpoint it starts from the beginning
    (exec "$wisp" train "$work/run.toml" --quiet "$@" --out "$work/run" --resume) 2>"$work/words" &
    pid=$!
    ((moment = (RANDOM * 32768 + RANDOM) % length)) || true
    sleep "$((moment / 1000000)).$(printf '%06d' $((moment % 1000000)))"
    kill -9 "$pid" 2>"$work/ended" || true
    status=0
    wait "$pid" 2>"$work/ended" || status=$?
    if ((status == 0)); then break; fi
    if ((status != 137)); then
      echo "kill_and_resume: run $i failed with status $status:" >&2
      cat "$work/words" >&2
      exit 1
    fi
    if [[ -d $work/run/checkpoints/saving.tmp ]]; then saving=$((saving + 1)); fi
  done
  if ! fingerprint "$work/run" | cmp -s - "$work/expected"; then
    echo "kill_and_resume: run $i ended in other bits" >&2
    exit 1
  fi
done
echo "kill_and_resume: $times runs, $resumes resumes after SIGKILL ($saving while saving), all ended in the same bits"
