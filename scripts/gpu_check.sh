#!/bin/bash
# Says what holds on this machine's GPU: builds Wisp for it, then compares, checks, breaks and times it, a stage at a time.
#
#   gpu_check.sh OUT [--data DIR] [--peer SCRIPT] [--only STAGE] [--dry]
#
# OUT gets report.md and report.json, what each stage said, and its log. A stage has a process and a time limit of its own; one
# that fails does not stop the next, and one that has passed is not run again unless --only names it:
#
#   build     program and tests, for this GPU                                              15 minutes at most
#   parity    tests on the device; steps beside the CPU's; saved here, resumed there       15
#   sanitize  memory, races and uninitialised reads of some kernels (compute-sanitizer)    15
#   faults    memory that runs out, damaged payloads, a peer that is killed                5
#   speed     training steps, beside SCRIPT CASE --device cuda if --peer names one         10
#   codec     encode and decode of every method, 25 million gradients                      10
#   train     ResNet-20 for 30 epochs, dense and dgc, on DIR's CIFAR-10; drawn images without --data    20
#
# --dry, for machines without a GPU: every command is started, and has to end for want of one. BUILD names the build
# (build/cuda). Exit status 1 if a stage failed.
# shellcheck disable=SC2015,SC2317 # a stage's functions are called by name
set -uo pipefail

stages="build parity sanitize faults speed codec train"
declare -A minutes=([build]=15 [parity]=15 [sanitize]=15 [faults]=5 [speed]=10 [codec]=10 [train]=20)

usage() {
  sed -n '4s/^# *//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

out='' data='' peer='' only='' dry='' run=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --data | --peer | --only | --run) [[ $# -ge 2 ]] || usage ;;&
    --data) data=$(realpath -- "$2") && shift ;;
    --peer) peer=$(realpath -- "$2") && shift ;;
    --only) only=$2 && shift ;;
    --run) run=$2 && shift ;; # within the stage's own process
    --dry) dry=yes ;;
    -*) usage ;;
    *)
      [[ -z $out ]] || usage
      out=$1
      ;;
  esac
  shift
done
[[ -n $out ]] || usage
[[ -z $only || " $stages " == *" $only "* ]] || { echo "gpu_check: no stage $only; there are: $stages" >&2 && exit 2; }
mkdir -p -- "$out" && out=$(realpath -- "$out")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
build=$(realpath -m -- "${BUILD:-build/cuda}")
wisp=$build/wisp
export PATH=$PATH:/usr/local/cuda/bin OMP_WAIT_POLICY=passive
[[ ! -d deps ]] || export LD_LIBRARY_PATH=$PWD/deps/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # of pack_deps.sh
resnet20=(apps/configs/cifar10_resnet20.toml data.name=synthetic)

# say TEXT: a line of the stage's part of the report
say() { echo "$*" >>"$out/$run.md"; }

# check WHAT COMMAND...: says whether the command did what it should
check() {
  local what=$1
  shift
  if "$@"; then say "- $what: yes"; else say "- $what: **no**" && failed=1; fi
}

# on_device COMMAND...: runs it; with --dry it has to fail for want of a device
on_device() {
  local words
  if [[ -z $dry ]]; then
    "$@"
    return
  fi
  if words=$("$@" 2>&1); then
    echo "$* did not miss its device" && return 1
  fi
  echo "$words"
  [[ $words == *"there is no driver"* || $words == *"is there a GPU"* ]]
}

# json KEY: of a line of JSON
json() { sed -n "s/.*\"$1\": \{0,1\}\"\{0,1\}\([^\",}]*\).*/\1/p"; }

stage_build() {
  local begin=$SECONDS more=()
  [[ -n $dry ]] || more=(-DCMAKE_CUDA_ARCHITECTURES=native)
  [[ -d deps ]] && more+=(-DWISP_DEPS_DIR="$PWD/deps")
  cmake --preset cuda -B "$build" "${more[@]}" || return
  cmake --build "$build" --target wisp core_test compression_test methods_test distributed_test \
    malformed_payload_test || return
  say "- built in $((SECONDS - begin)) s on $(nproc) cores"
  "$wisp" devices | sed 's/^/    /' >>"$out/build.md"
}

# run_tests PROGRAM [FILTER]: one process; if that crashes or fails, each suite in one of its own
run_tests() {
  local program=$build/tests/$1 filter=${2:-*} suite log
  log=$out/$(basename "$1").log
  "$program" --gtest_brief=1 --gtest_filter="$filter" >"$log" 2>&1
  local status=$?
  say "- $(basename "$1"): $(grep -E '^\[  (PASSED|SKIPPED|FAILED)  \] [0-9]+ test' "$log" | tr -s ' ' | tr '\n' ' ')"
  [[ $status -eq 0 ]] && return
  "$program" --gtest_list_tests --gtest_filter="$filter" | grep -o '^[^ ]*\.' | sort -u | while read -r suite; do
    timeout 120 "$program" --gtest_brief=1 --gtest_filter="$suite*" >"$log.suite" 2>&1 && continue
    say "  - **failed**: $suite $(grep -E '^\[  FAILED  \] [^ ]*\.' "$log.suite" | sort -u | head -n 5 | tr -s ' ' | tr '\n' ' ')"
    cat "$log.suite" >>"$log"
  done
  return 1
}

# losses RUN: of each step
losses() { grep -o '"loss": \{0,1\}[0-9.e+-]*' "$1/metrics.jsonl" | sed 's/.*: *//'; }

# near A B TOLERANCE: whether two runs have the same losses, relative to them
near() {
  paste <(losses "$1") <(losses "$2") | awk -v tolerance="$3" '
    NF == 2 { n++; d = $1 - $2; if (d < 0) d = -d; if (d > tolerance * $1) bad = 1; if (d / $1 > most) most = d / $1 }
    END { printf "%d losses, at most %.2g apart\n", n, most; exit n == 0 || bad }'
}

# files RUN: fingerprints of the files of its last checkpoint
files() { (cd "$1"/checkpoints/step_* 2>/dev/null && sha256sum -- * | grep -v manifest); }

same_files() { [[ -n $(files "$1") && $(files "$1") == "$(files "$2")" ]]; }

stage_parity() {
  local filter='*' runs=$out/runs train
  [[ -z $dry ]] || filter='*Device*:*device*'
  rm -rf "$runs"
  run_tests core/core_test "$filter" || failed=1
  run_tests compression/compression_test "$filter" || failed=1
  run_tests compression/methods_test "$filter" || failed=1
  run_tests distributed/distributed_test "$filter" || failed=1

  train=("$wisp" train "${resnet20[@]}" train.max_steps=20 train.log_every=1 train.eval_every=0 workers=2 threads=1
    compression.method=dgc compression.warmup=none)
  check "a run on the device ends" on_device "${train[@]}" device=cuda --out "$runs/device"
  [[ -z $dry ]] || return "$failed"
  "${train[@]}" device=cpu --out "$runs/cpu"
  check "20 losses of ResNet-20 with dgc are the CPU's within 1 %" near "$runs/cpu" "$runs/device" 0.01
  "${train[@]}" device=cuda --out "$runs/again"
  check "the same run again leaves the same files" same_files "$runs/device" "$runs/again"
  "${train[@]}" device=cuda compression.overlap=false --out "$runs/inline"
  check "inline leaves the files of overlapped" same_files "$runs/device" "$runs/inline"
  local first second
  for first in cuda cpu; do
    [[ $first == cuda ]] && second=cpu || second=cuda
    "${train[@]}" device="$first" train.max_steps=10 --out "$runs/from_$first"
    "${train[@]}" device="$second" --out "$runs/from_$first" --resume
    check "saved on $first, resumed on $second" near "$runs/cpu" "$runs/from_$first" 0.01
  done
}

stage_sanitize() {
  local tool
  command -v compute-sanitizer >/dev/null || { say "- no compute-sanitizer here" && [[ -n $dry ]] && return; }
  for tool in memcheck racecheck initcheck; do
    check "$tool finds nothing" compute-sanitizer --tool "$tool" --error-exitcode 1 "$build/tests/core/core_test" \
      --gtest_brief=1 --gtest_filter='DeviceLoops*:DeviceRowParts*:DeviceOps*:*KernelBackend*'
  done
}

# fails_with WORDS COMMAND...: whether the command fails, saying that
fails_with() {
  local wanted=$1 words
  shift
  words=$("$@" 2>&1) && echo "$* did not fail" && return 1
  echo "$words"
  [[ $words == *"$wanted"* ]]
}

killed_peer() {
  local log=$out/killed.log
  rm -rf "$out/runs/killed"
  timeout 120 mpirun -n 2 --oversubscribe --allow-run-as-root "$wisp" train "${resnet20[@]}" device=cuda timeout_s=30 \
    --out "$out/runs/killed" >"$log" 2>&1 &
  local launcher=$! worker=
  for _ in $(seq 60); do
    sleep 1
    grep -q 'epoch 1' "$log" && worker=$(pgrep -n -f "$out/runs/killed") && break
  done
  [[ -n $worker ]] && kill -9 "$worker"
  wait "$launcher"
  local status=$?
  cat "$log"
  [[ -n $worker && $status -ne 0 && $status -ne 124 ]]
}

stage_faults() {
  local large=("$wisp" bench step apps/configs/synthetic_resnet50.toml workers=1 data.side=224 data.train_count=8192
    train.batch=8192 device=cuda --seconds 1)
  if [[ -n $dry ]]; then
    check "memory that runs out is an error" on_device "${large[@]}"
    return
  fi
  check "memory that runs out is an error that says so" fails_with "out of memory" "${large[@]}"
  run_tests apps/malformed_payload_test || failed=1
  check "afterwards a run works" "$wisp" bench step "${resnet20[@]}" device=cuda workers=1 --seconds 1
  command -v mpirun >/dev/null || { say "- no mpirun here: no peer was killed" && return; }
  check "a killed peer ends the other process" killed_peer
}

# ours NAME CONFIG OVERRIDE...; theirs CASE OPTION...: a row's rate
ours() { "$wisp" bench step "$@" device=cuda workers=1 --seconds 5 --json | tee -a "$out/speed.jsonl" | json rate; }
theirs() {
  [[ -n $peer ]] || return 0
  python3 "$peer" "$@" --device cuda --seconds 5 | tee -a "$out/speed.jsonl" | json rate
}

# compare NAME PEER_OPTIONS -- CONFIG OVERRIDE...: two rounds of each, in turn
compare() {
  local name=$1 theirs=() row="" mine other
  shift
  while [[ $1 != -- ]]; do theirs+=("$1") && shift; done
  shift
  for _ in 1 2; do
    mine=$(ours "$@") other=$(theirs "${theirs[@]}")
    row+=" ${mine:-**failed**} : ${other:--} |"
    [[ -n $mine ]] || failed=1
  done
  say "| $name |$row"
}

stage_speed() {
  local lm=(apps/configs/ptb_medium.toml optimizer.momentum=0.9 optimizer.lr=0.01 clip.norm=0 model.loss=mean "data.path=${data:-data-cache}")
  if [[ -n $dry ]]; then
    check "a step is timed" on_device "$wisp" bench step "${resnet20[@]}" device=cuda workers=1 --seconds 1
    return
  fi
  rm -f "$out/speed.jsonl"
  say "| a second, ours : theirs | round 1 | round 2 |"
  say "| --- | --- | --- |"
  # the peer's f32 is TF32
  compare "resnet20 b128 tf32" resnet20 --mode graph -- "${resnet20[@]}" train.batch=128 train.tf32=true
  compare "resnet20 b128 bf16" resnet20 --mode graph --dtype bf16 -- "${resnet20[@]}" train.batch=128 train.precision=bf16
  compare "resnet50 b256 bf16" resnet50 --mode compile --dtype bf16 --batch 256 -- apps/configs/synthetic_resnet50.toml \
    data.side=224 data.train_count=512 train.batch=256 train.precision=bf16
  [[ -z $data ]] || compare "lstm650 b20 tf32" lstm650 --mode graph -- "${lm[@]}" train.tf32=true
  say "| resnet20, 4 workers x 32 | $("$wisp" bench step "${resnet20[@]}" device=cuda workers=4 train.batch=128 --seconds 5 --json | json rate) | |"
  say "| the same with dgc | $("$wisp" bench step "${resnet20[@]}" device=cuda workers=4 train.batch=128 compression.method=dgc \
    compression.warmup=none --seconds 5 --json | json rate) | |"
  return "$failed"
}

stage_codec() {
  local bench=("$wisp" bench codec --numel 25000000 --ratio 0.001 --seconds 3)
  if [[ -n $dry ]]; then
    check "a method is timed" on_device "${bench[@]}" --method dgc device=cuda
    return
  fi
  "${bench[@]}" --all device=cuda | sed 's/^/    /' >>"$out/codec.md"
}

stage_train() {
  local config=(apps/configs/cifar10_resnet20.toml device=cuda train.epochs=30) method
  if [[ -n $data ]]; then config+=("data.path=$data"); else config+=(data.name=synthetic train.epochs=1); fi
  for method in none dgc; do
    rm -rf "$out/runs/train_$method"
    check "ResNet-20 trains with compression.method=$method" on_device "$wisp" train "${config[@]}" \
      compression.method="$method" --out "$out/runs/train_$method"
    [[ -n $dry ]] || say "  - test accuracy $(json test_accuracy <"$out/runs/train_$method/summary.json")," \
      "$(json images_per_s <"$out/runs/train_$method/summary.json") images/s"
  done
}

if [[ -n $run ]]; then
  failed=0
  : >"$out/$run.md"
  "stage_$run" || failed=1
  exit "$failed"
fi

# report: what all stages have said so far
report() {
  local stage result seconds comma=""
  {
    echo "# Wisp on a GPU"
    echo
    echo "$(git describe --always --dirty 2>/dev/null || echo 'no commit known'), $(date -u +%F)${dry:+, dry: there was no GPU}"
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
    for stage in $stages; do
      [[ -f $out/$stage.result ]] || continue
      printf '\n## %s: %s\n\n' "$stage" "$(tr '\n' ' ' <"$out/$stage.result")"
      cat "$out/$stage.md"
    done
  } >"$out/report.md"
  {
    echo "["
    for stage in $stages; do
      [[ -f $out/$stage.result ]] || continue
      read -r result seconds _ <"$out/$stage.result"
      printf '%s  {"stage": "%s", "result": "%s", "seconds": %d}' "$comma" "$stage" "$result" "$seconds"
      comma=$',\n'
    done
    printf '\n]\n'
  } >"$out/report.json"
}

status=0
for stage in ${only:-$stages}; do
  [[ -n $only || ! -f $out/$stage.result || $(<"$out/$stage.result") != passed* ]] || continue
  begin=$SECONDS
  timeout -k 20 "$((minutes[$stage] * 60))" "${BASH_SOURCE[0]}" "$out" --run "$stage" ${data:+--data "$data"} \
    ${peer:+--peer "$peer"} ${dry:+--dry} >"$out/$stage.log" 2>&1
  case $? in
    0) result=passed ;;
    124 | 137) result=timeout ;;
    *) result=FAILED ;;
  esac
  [[ $result == passed ]] || status=1
  echo "$result $((SECONDS - begin)) s of ${minutes[$stage]} minutes at most" >"$out/$stage.result"
  echo "gpu_check: $stage: $(<"$out/$stage.result")"
  report
done
exit "$status"
