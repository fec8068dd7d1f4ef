#!/bin/bash
# Checks Wisp on this machine's GPU: builds it, then compares, checks, breaks and times it, a stage at a time.
#
#   gpu_check.sh OUT [--data DIR] [--peer SCRIPT] [--only STAGE] [--dry]
#
# OUT gets report.md and report.json with the results of all stages, and a log of each stage. A stage has a process and
# a time limit of its own, and one that fails does not stop the next. A stage that has passed runs again only if --only
# names it, the sources have changed, or data or a peer that it left out is given now. If the script is cut short, start
# it again with the same OUT.
#
#   build     program and tests, for this GPU                                              9 minutes at most
#   parity    steps beside the CPU's; saved here, resumed there; tests on the device       9
#   speed     training steps, beside SCRIPT CASE --device cuda if --peer names one         9
#   codec     encode and decode of every method, 25 million gradients                      9
#   faults    memory that runs out, damaged payloads, a peer that is killed                5
#   train     ResNet-20 for 30 epochs, dense and dgc, on CIFAR-10, or an epoch of drawn images; an epoch of words  9
#   sanitize  memory, races and uninitialised reads of some kernels (compute-sanitizer)    9
#
# DIR holds the unpacked data sets. A missing one is reported as left out, and the stage is "partial". --dry is for
# machines without a GPU: every command is started, and must fail because there is no GPU. BUILD names the build
# (build/cuda). Exit status 1 if a stage failed.
# shellcheck disable=SC2015,SC2317 # a stage's functions are called by name
set -uo pipefail

stages="build parity speed codec faults train sanitize"
declare -A minutes=([build]=9 [parity]=9 [speed]=9 [codec]=9 [faults]=5 [train]=9 [sanitize]=9)

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
self=$(realpath -- "${BASH_SOURCE[0]}")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
build=$(realpath -m -- "${BUILD:-build/cuda}")
wisp=$build/wisp
export PATH=$PATH:/usr/local/cuda/bin OMP_WAIT_POLICY=passive
[[ ! -d deps ]] || export LD_LIBRARY_PATH=$PWD/deps/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # made by pack_deps.sh
resnet20=(apps/configs/cifar10_resnet20.toml data.name=synthetic)
[[ -n $data && -d $data/cifar-10-batches-bin ]] && has_cifar10=yes || has_cifar10=''
[[ -n $data && -d $data/simple-examples/data ]] && has_ptb=yes || has_ptb=''
partial=77 # status of a stage that left out a part

# say TEXT: adds a line to the stage's part of the report
say() { echo "$*" >>"$out/$run.md"; }

# check WHAT COMMAND...: reports whether the command succeeded
check() {
  local what=$1
  shift
  if "$@"; then say "- $what: yes"; else say "- $what: **no**" && failed=1; fi
}

# left_out TEXT: reports a part that was left out
left_out() { say "- left out: $*" && incomplete=yes; }

# on_device COMMAND...: runs the command; with --dry it must fail because there is no device
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

# json KEY: the key's value in a line of JSON
json() { sed -n "s/.*\"$1\": \{0,1\}\"\{0,1\}\([^\",}]*\).*/\1/p"; }

stage_build() {
  local begin=$SECONDS more=() wheels
  # compilers newer than Debian 12's have more warnings
  [[ -n $dry ]] || more+=(-DCMAKE_CUDA_ARCHITECTURES=native -DWISP_WERROR=OFF)
  [[ ! -d deps ]] || more+=(-DWISP_DEPS_DIR="$PWD/deps")
  wheels=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null) &&
    more+=(-DWISP_CUDA_LIBRARIES_DIR="$(dirname -- "$wheels")")
  cmake --preset cuda -B "$build" "${more[@]}" || return
  cmake --build "$build" --target wisp core_test compression_test methods_test distributed_test \
    malformed_payload_test || return
  say "- built in $((SECONDS - begin)) s on $(nproc) cores"
  "$wisp" devices | sed 's/^/    /' >>"$out/build.md"
  [[ -n $dry ]] || "$wisp" devices --json | grep -q '"no_cuda": ""'
}

# run_tests PROGRAM [FILTER]: runs the tests in one process; if that crashes or fails, each suite in a process of its
# own
run_tests() {
  local program=$build/tests/$1 filter=${2:-*} suite log
  log=$out/$(basename "$1").log
  timeout --foreground 150 "$program" --gtest_brief=1 --gtest_filter="$filter" >"$log" 2>&1
  local status=$?
  say "- $(basename "$1"): $(grep -E '^\[  (PASSED |SKIPPED|FAILED )  ?\] [0-9]+ test' "$log" | tr -s ' ' | tr '\n' ' ')"
  [[ $status -eq 0 && (-n $dry || $(<"$log") != *"[  PASSED  ] 0 tests"*) ]] && return
  "$program" --gtest_list_tests --gtest_filter="$filter" | grep -o '^[^ ]*\.' | sort -u | while read -r suite; do
    timeout --foreground 60 "$program" --gtest_brief=1 --gtest_filter="$suite*" >"$log.suite" 2>&1 && continue
    say "  - **failed**: $suite $(grep -E '^\[  FAILED  \] [^ ]*\.' "$log.suite" | sort -u | head -n 5 | tr -s ' ' | tr '\n' ' ')"
    cat "$log.suite" >>"$log"
  done
  return 1
}

# losses RUN: the loss of each step
losses() { grep -o '"loss": \{0,1\}[0-9.e+-]*' "$1/metrics.jsonl" | sed 's/.*: *//'; }

# near A B TOLERANCE: whether two runs have the same losses in all steps, within the relative tolerance
near() {
  local words
  words=$(paste <(losses "$1") <(losses "$2") | awk -v tolerance="$3" -v wanted="$steps" '
    { n++; if (NF != 2 || $1 + 0 == 0 || $2 + 0 == 0) { bad = 1; next } d = ($1 - $2) / $1; if (d < 0) d = -d }
    d > tolerance { bad = 1 }
    d > most { most = d }
    END { printf "%d losses of %d, at most %.2g apart\n", n, wanted, most; exit n != wanted || bad }')
  local status=$?
  say "  - $words"
  return "$status"
}

# files RUN: checksums of the files of the run's last checkpoint
files() { (cd "$1"/checkpoints/step_* 2>/dev/null && sha256sum -- * | grep -v manifest); }

same_files() { [[ -n $(files "$1") && $(files "$1") == "$(files "$2")" ]]; }

steps=20
# Two backends of the CPU are 1e-4 apart here. With the config's rate of 0.1 they are 3 % apart, since selections
# differ.
tolerance=0.001
stage_parity() {
  local filter='*' runs=$out/runs train first second
  [[ -z $dry ]] || filter='*Device*:*device*'
  rm -rf "$runs"
  train=("$wisp" train "${resnet20[@]}" data.train_count=2560 data.test_count=256 train.max_steps="$steps" train.log_every=1
    train.eval_every=0 optimizer.lr=0.005 workers=2 threads=1 compression.method=dgc compression.warmup=none)
  check "a run on the device ends" on_device "${train[@]}" device=cuda --out "$runs/device"
  if [[ -z $dry ]]; then
    check "the same on the CPU" "${train[@]}" device=cpu --out "$runs/cpu"
    check "$steps losses of ResNet-20 with dgc are the CPU's within 0.1 %" near "$runs/cpu" "$runs/device" "$tolerance"
    check "the same again" "${train[@]}" device=cuda --out "$runs/again"
    check "leaves the same files" same_files "$runs/device" "$runs/again"
    check "inline" "${train[@]}" device=cuda compression.overlap=false --out "$runs/inline"
    check "leaves the files of overlapped" same_files "$runs/device" "$runs/inline"
    for first in cuda cpu; do
      [[ $first == cuda ]] && second=cpu || second=cuda
      check "ten steps on $first" "${train[@]}" device="$first" train.max_steps=10 --out "$runs/from_$first"
      check "resumed on $second" "${train[@]}" device="$second" --out "$runs/from_$first" --resume
      check "have the losses of the CPU" near "$runs/cpu" "$runs/from_$first" "$tolerance"
    done
  fi
  # only tests that use a device; the others test the CPU, compiled as CUDA
  run_tests core/core_test "$filter" || failed=1
  run_tests distributed/distributed_test "$filter" || failed=1
  [[ -z $dry ]] || return "$failed"
  run_tests compression/compression_test || failed=1
  run_tests compression/methods_test || failed=1
}

stage_sanitize() {
  local tool filter tests='DeviceLoops*:DeviceRowParts*:DeviceOps*'
  if ! command -v compute-sanitizer >/dev/null; then
    left_out "there is no compute-sanitizer here"
    return
  fi
  for tool in memcheck racecheck initcheck; do
    # recurrent layers use NVIDIA's own kernels, which are not clean under the other tools
    [[ $tool == memcheck ]] && filter="$tests:*KernelBackend*" || filter=$tests
    check "$tool finds nothing" timeout --foreground 120 compute-sanitizer --tool "$tool" --error-exitcode 1 \
      "$build/tests/core/core_test" --gtest_brief=1 --gtest_filter="$filter"
    check "$tool finds nothing in the methods" timeout --foreground 120 compute-sanitizer --tool "$tool" --error-exitcode 1 \
      "$build/tests/distributed/distributed_test" --gtest_brief=1 --gtest_filter='DeviceCodecBench.SendsTheCpusBytes'
  done
}

# fails_with WORDS COMMAND...: whether the command fails and says WORDS
fails_with() {
  local wanted=$1 words
  shift
  words=$("$@" 2>&1) && echo "$* did not fail" && return 1
  echo "$words"
  [[ $words == *"$wanted"* ]]
}

processes=(mpirun -n 2 --oversubscribe --allow-run-as-root "$wisp" train "${resnet20[@]}" workers=2 device=cuda timeout_s=30)

killed_peer() {
  local log=$out/killed.log
  rm -rf "$out/runs/killed"
  timeout --foreground 120 "${processes[@]}" --out "$out/runs/killed" >"$log" 2>&1 &
  local launcher=$! worker=
  for _ in $(seq 60); do
    sleep 1
    kill -0 "$launcher" 2>/dev/null || break
    grep -q 'epoch 1' "$log" && worker=$(pgrep -n -f "wisp train .*$out/runs/killed") && break
  done
  [[ -n $worker ]] && kill -9 "$worker"
  wait "$launcher"
  local status=$?
  cat "$log"
  [[ -n $worker && $status -ne 0 && $status -ne 124 ]]
}

stage_faults() {
  # the largest activation has 1.6e9 numbers; all activations take some 200 GB
  local large=("$wisp" bench step apps/configs/synthetic_resnet50.toml model.depth=152 workers=1 data.side=224
    data.train_count=2048 train.batch=2048 device=cuda --seconds 1)
  if [[ -n $dry ]]; then
    check "memory that runs out is an error" on_device "${large[@]}"
    run_tests apps/malformed_payload_test || failed=1
    check "processes end, too" on_device "${processes[@]}" --out "$out/runs/killed"
    return "$failed"
  fi
  check "memory that runs out is an error that says so" fails_with "out of memory" "${large[@]}"
  run_tests apps/malformed_payload_test || failed=1
  check "afterwards a run works" "$wisp" bench step "${resnet20[@]}" device=cuda workers=1 --seconds 1
  command -v mpirun >/dev/null || { left_out "there is no mpirun here: no peer was killed" && return; }
  check "a killed peer ends the other process" killed_peer
}

# time_ours CONFIG OVERRIDE..., time_peer CASE OPTION...: the JSON line of a timed step; time_peer also compiles
time_ours() {
  timeout --foreground 60 "$wisp" bench step "$@" device=cuda --seconds 3 --json | tee -a "$out/$run.jsonl"
}
time_peer() {
  timeout --foreground 150 python3 "$peer" "$@" --device cuda --seconds 3 | tee -a "$out/$run.jsonl"
}

# compare NAME BAR [=ROW | CASE OPTION...] -- CONFIG OVERRIDE...: two rounds, in turn with the peer's, or beside those
# of an earlier ROW. Reports whether both rounds together reach BAR times the other's rate. --dry only checks our config
declare -A rates
compare() {
  local name=$1 bar=$2 other=() row="" line mine theirs memory="" their_memory=- mine_sum=0 their_sum=0 round ratio
  shift 2
  while [[ $1 != -- ]]; do other+=("$1") && shift; done
  shift
  if [[ -n $dry ]]; then
    check "what is timed is known: $name" "$wisp" config "$@" train.backend=reference # the reference has bf16 on any CPU
    return
  fi
  for round in 1 2; do
    line=$(time_ours "$@")
    mine=$(json rate <<<"$line") memory=$(json peak_device_mb <<<"$line") theirs=-
    rates[$name.$round]=$mine
    if [[ ${other[0]-} == =* ]]; then
      theirs=${rates[${other[0]#=}.$round]-}
    elif [[ -n $peer ]]; then
      line=$(time_peer "${other[@]}")
      theirs=$(json rate <<<"$line") their_memory=$(json peak_gpu_mb <<<"$line")
    fi
    row+=" ${mine:-**failed**} : ${theirs:-**failed**} |"
    [[ -n $mine && -n $theirs ]] || failed=1
    mine_sum+=" + ${mine:-none}" their_sum+=" + ${theirs:-none}"
  done
  ratio=-
  [[ "$mine_sum $their_sum" == *none* || $theirs == - ]] || ratio=$(awk -v bar="$bar" "BEGIN {
    r = ($mine_sum) / ($their_sum)
    printf(r >= bar ? \"%.2f\" : \"**%.2f**\", r) }")
  say "| $name |$row $ratio | $bar | ${memory:-**failed**} : ${their_memory:-**failed**} |"
}

# utterances DIR: writes eight utterances of 400 frames and 40 letters, as noise in files without a header, and their
# manifest
utterances() {
  mkdir -p -- "$1"
  local i
  for i in 1 2 3 4 5 6 7 8; do
    head -c 127680 /dev/urandom >"$1/$i.raw" # 399 strides of 160 samples of 16 bits
    echo "{\"audio\": \"$i.raw\", \"text\": \"$(printf 'ABCDEFGH%.0s' 1 2 3 4 5)\"}"
  done >"$1/manifest.jsonl"
}

stage_speed() {
  # as in the peer: tied weights, free choice of algorithms, and TF32 where it says f32
  local lm=(apps/configs/ptb_medium.toml model.tied=true model.loss=mean optimizer.momentum=0.9 optimizer.lr=0.01 clip.norm=0
    workers=1 train.tf32=true "data.path=$data")
  local one=("${resnet20[@]}" workers=1 train.batch=128 train.deterministic=false)
  local four=("${resnet20[@]}" workers=4 train.batch=128 train.deterministic=false train.tf32=true)
  local photos=(apps/configs/synthetic_resnet50.toml data.side=224 data.train_count=512 workers=1 train.batch=256
    data.test_count=256 train.precision=bf16 train.deterministic=false)
  local sounds=$out/utterances
  local speech=(apps/configs/an4_deepspeech_lstm.toml data.name=speech data.raw_rate=16000 "data.train=$sounds/manifest.jsonl"
    "data.test=$sounds/manifest.jsonl" workers=1 optimizer.lr=1e-4 clip.norm=0 model.conv_bias=false train.deterministic=false)
  utterances "$sounds"
  [[ -z $dry ]] || check "a step is timed" on_device "$wisp" bench step "${one[@]}" device=cuda --seconds 1
  [[ -z $dry ]] || check "a step of speech is timed" on_device "$wisp" bench step "${speech[@]}" device=cuda --seconds 1
  rm -f "$out/$run.jsonl"
  [[ -n $peer ]] || left_out "no --peer to compare with"
  [[ -n $has_ptb ]] || left_out "lstm650: no simple-examples/data in --data"
  say "- a ratio is of both rounds together; bold: below its bar"
  say ""
  say "| a second, ours : theirs | round 1 | round 2 | ratio | bar | MB |"
  say "| --- | --- | --- | --- | --- | --- |"
  compare "resnet20 b128 tf32" 1.15 resnet20 --mode graph -- "${one[@]}" train.tf32=true
  compare "resnet20 b128 bf16" 1.15 resnet20 --mode graph --dtype bf16 -- "${one[@]}" train.precision=bf16
  compare "the same, deterministic" - "=resnet20 b128 bf16" -- "${one[@]}" train.precision=bf16 train.deterministic=true
  compare "resnet50 b256 bf16" 1.0 resnet50 --mode compile --dtype bf16 --batch 256 -- "${photos[@]}"
  [[ -z $has_ptb ]] || compare "lstm650 b20 tf32" 1.0 lstm650 --mode graph -- "${lm[@]}"
  compare "deepspeech b8 tf32" 1.5 deepspeech_an4 -- "${speech[@]}" train.tf32=true
  compare "deepspeech b8 bf16" 1.5 deepspeech_an4 --dtype bf16 -- "${speech[@]}" train.precision=bf16
  compare "resnet20, 4 workers x 32 : 1 x 128" 0.6 "=resnet20 b128 tf32" -- "${four[@]}"
  compare "dgc : dense, 4 workers x 32" 0.7 "=resnet20, 4 workers x 32 : 1 x 128" -- "${four[@]}" \
    compression.method=dgc compression.warmup=none
  return "$failed"
}

# Each method has a process of its own, so one that fails does not end the others.
stage_codec() {
  local bench=("$wisp" bench codec --numel 25000000 --ratio 0.001 --seconds 1.5 device=cuda) method ms
  if [[ -n $dry ]]; then
    check "a method is timed" on_device "${bench[@]}" --method dgc
    return
  fi
  rm -f "$out/$run.jsonl"
  if [[ -n $peer ]]; then
    ms=$(time_peer dgc | json ms)
    say "- the peer's dgc, encode and decode: ${ms:-**failed**} ms; the bar for ours is 0.45"
    [[ -n $ms ]] || failed=1
  else
    left_out "no --peer to compare dgc with"
  fi
  for method in $("$wisp" bench codec --all --numel 1000 --seconds 0 --json | json method | sort -u); do
    check "$method" timeout --foreground 60 "${bench[@]}" --method "$method" >"$out/codec.words"
    sed 's/^/      /' "$out/codec.words" >>"$out/codec.md"
  done
  return "$failed"
}

stage_train() {
  local config=(apps/configs/cifar10_resnet20.toml device=cuda train.epochs=30) method directory accuracy perplexity
  if [[ -n $has_cifar10 ]]; then
    config+=("data.path=$data")
  else
    config+=(data.name=synthetic train.epochs=1)
    left_out "no cifar-10-batches-bin in --data: one epoch of drawn images"
  fi
  for method in none dgc; do
    directory=$out/runs/train_$method
    rm -rf "$directory"
    check "ResNet-20 trains with compression.method=$method" on_device "$wisp" train "${config[@]}" \
      compression.method="$method" --out "$directory"
    [[ -z $dry ]] || continue
    accuracy=$(json test_accuracy <"$directory/summary.json")
    say "  - test accuracy $accuracy, $(json images_per_s <"$directory/summary.json") images/s"
    [[ -z $has_cifar10 ]] || check "it learns: 85 % and more" awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.85) }'
  done
  [[ -n $has_ptb || -n $dry ]] || { left_out "language model: no simple-examples/data in --data" && return; }
  directory=$out/runs/train_lm
  rm -rf "$directory"
  check "a language model trains for an epoch" on_device "$wisp" train apps/configs/ptb_small.toml workers=1 train.epochs=1 \
    device=cuda "data.path=$data" --out "$directory"
  [[ -z $dry ]] || return "$failed"
  perplexity=$(json test_perplexity <"$directory/summary.json")
  say "  - test perplexity $perplexity; PyTorch's is 181 after its first epoch"
  check "it learns: 200 and less" awk -v p="${perplexity:-none}" 'BEGIN { exit !(p + 0 > 0 && p <= 200) }'
}

if [[ -n $run ]]; then
  failed=0 incomplete=''
  "stage_$run" || failed=1
  [[ $failed -ne 0 || -z $incomplete ]] || exit "$partial"
  exit "$failed"
fi

# report: writes report.md and report.json from the stages so far
report() {
  local stage result seconds comma=""
  {
    echo "# Wisp on a GPU"
    echo
    echo "$sources, $(date -u +%F)"
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
    for stage in $stages; do
      [[ -f $out/$stage.result ]] || continue
      printf '\n## %s: %s\n\n' "$stage" "$(<"$out/$stage.result")"
      cat "$out/$stage.md"
      grep -q '^\(passed\|partial\)' "$out/$stage.result" || { echo && tail -n 20 "$out/$stage.log" | sed 's/^/    /'; }
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

# Results of other sources, or of --dry, are discarded.
sources="$(git describe --always --dirty 2>/dev/null || cat deps/commit 2>/dev/null || echo 'no commit known')${dry:+, dry: there was no GPU}"
[[ -f $out/sources && $(<"$out/sources") == "$sources" ]] || rm -f "$out"/*.result
echo "$sources" >"$out/sources"
# a partial stage runs again if other data or another peer is given
given="$data $peer"
[[ -f $out/given && $(<"$out/given") == "$given" ]] || grep -lsZ '^partial' "$out"/*.result | xargs -0r rm -f
echo "$given" >"$out/given"

status=0
for stage in ${only:-$stages}; do
  [[ -n $only || ! -f $out/$stage.result || $(<"$out/$stage.result") != pa* || ! -x $wisp ]] || continue
  begin=$SECONDS
  : >"$out/$stage.md"
  : >"$out/$stage.log"
  echo "interrupted 0 s of ${minutes[$stage]} minutes at most" >"$out/$stage.result"
  report
  timeout -k 20 "$((minutes[$stage] * 60))" "$self" "$out" --run "$stage" ${data:+--data "$data"} \
    ${peer:+--peer "$peer"} ${dry:+--dry} >"$out/$stage.log" 2>&1
  case $? in
    0) result=passed ;;
    "$partial") result=partial ;;
    124 | 137) result=timeout ;;
    *) result=FAILED ;;
  esac
  [[ $result == passed || $result == partial ]] || status=1
  echo "$result $((SECONDS - begin)) s of ${minutes[$stage]} minutes at most" >"$out/$stage.result"
  echo "gpu_check: $stage: $(<"$out/$stage.result")"
  report
  if [[ $stage == build && $result != passed ]]; then
    echo "gpu_check: without a build there is nothing to check" && break
  fi
done
exit "$status"
