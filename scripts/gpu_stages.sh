#!/bin/bash
# The stages of gpu_check.sh that tell right from wrong, and what all stages share. gpu_check.sh reads this file and
# gpu_timings.sh: it sets out, build, configs, wisp, packed, data, peer, dry and run, and has part(), say() and left_out().
# shellcheck disable=SC2154,SC2317 # set, and called by name, in gpu_check.sh

photos_whole=0.85 # test accuracy after 30 epochs that shows that it learns
photos_tenth=0.4  # the same of a tenth of the photos; a guess, since none was measured

# Device tests; the others test the CPU, compiled as CUDA. Backend's tests run on each backend of the program.
device_tests='*Device*:*device*:Copy.*:Backend.*:RealFft.*'

resnet20=("$configs/cifar10_resnet20.toml" data.name=synthetic)
tenth=''
if [[ -d $data/cifar-10-batches-bin ]]; then
  photos=$data
elif [[ -d $data/cifar-10-tenth ]]; then
  photos=$data/repeated tenth=yes
else
  photos=''
fi
[[ -d $data/simple-examples/data ]] && words=$data || words=''

# check WHAT COMMAND...: reports whether the command succeeded
check() {
  local what=$1
  shift
  if "$@"; then say "- $what: yes"; else say "- $what: **no**"; fi
}

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

# compute EXPRESSION: its value with two decimals
compute() { awk "BEGIN { printf \"%.2f\", $1 }"; }
holds() { awk "BEGIN { exit !($1) }"; }

# ---------------------------------------------------------------------------------------------------------------- build

unpack() {
  local file
  rm -rf "$packed/unpacked" && mkdir -p "$packed/unpacked" || return
  if command -v xz >/dev/null; then
    tar -xJf "$packed/wisp_gpu.tar.xz" --no-same-owner -C "$packed/unpacked"
  else
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$packed/wisp_gpu.tar.xz" "$packed/unpacked"
  fi || return
  # the program wants 10,000 photos a file
  for file in "$packed"/unpacked/data/cifar-10-tenth/*.bin; do
    [[ -f $file ]] || break
    mkdir -p "$packed/unpacked/data/repeated/cifar-10-batches-bin" || return
    for _ in 1 2 3 4 5 6 7 8 9 10; do cat "$file"; done >"$packed/unpacked/data/repeated/cifar-10-batches-bin/${file##*/}" || return
  done
}

# works: whether the program starts here and its kernels run on this GPU
works() {
  local said
  said=$("$wisp" devices --json 2>&1)
  echo "$said"
  if [[ -n $dry ]]; then
    [[ $said == *"there is no driver"* ]]
    return
  fi
  [[ $said == *'"no_cuda": ""'* ]] && "$wisp" bench codec --method int8 --numel 1000 --seconds 0 device=cuda
}

build_here() {
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
}

stage_build() {
  if [[ -n $packed && ! -f $out/useless ]]; then
    if unpack && works; then
      part program say "- the packed program: $("$wisp" --version)"
      return
    fi
    if [[ -n $dry ]]; then
      part program false
      return
    fi
    part packed say "- the packed program does not run here, so this machine builds one"
    touch "$out/useless"
    build=$PWD/build/cuda wisp=$PWD/build/cuda/wisp
  fi
  part program build_here
  [[ ! -x $wisp ]] || part "it runs on this GPU" works
}

# ---------------------------------------------------------------------------------------------------------------- tests

# run_tests PROGRAM FILTER [each]: runs the tests in one process; "each": if that fails, each suite in one of its own.
# With --dry they skip themselves.
run_tests() {
  local name=${1##*/} program=$build/tests/$1 filter=$2 log suite status counts
  log=$out/$name.log
  timeout --foreground 120 "$program" --gtest_brief=1 --gtest_filter="$filter" >"$log" 2>&1
  status=$?
  counts=$(grep -E '^\[  (PASSED |SKIPPED|FAILED )  ?\] [0-9]+ test' "$log" | tr -d '[]' | tr -s ' ' | tr '\n' ' ')
  if [[ -n $dry ]]; then
    [[ $status -eq 0 && $counts == *SKIPPED* ]] || counts+=" **failed**"
  else
    [[ $status -eq 0 && $counts != *"PASSED 0 "* ]] || counts+=" **failed** (status $status)"
  fi
  say "- $name: $counts"
  [[ $counts == *failed* ]] || return 0
  cat "$log"
  grep -oE '^\[  FAILED  \] [^ ,]*\.[^ ,]*' "$log" | sort -u | head -n 8 | while read -r _ _ _ name; do say "  - **failed**: $name"; done
  [[ ${3-} == each ]] || return 0
  "$program" --gtest_list_tests --gtest_filter="$filter" | grep -o '^[^ ]*\.' | sort -u | while read -r suite; do
    timeout --foreground 40 "$program" --gtest_brief=1 --gtest_filter="$suite*" >"$log.suite" 2>&1 && continue
    say "  - **failed** on its own: $suite"
    cat "$log.suite" >>"$log"
  done
}

# has_device_tests PROGRAM: whether its list shows some
has_device_tests() {
  [[ -x $build/tests/$1 ]] && "$build/tests/$1" --gtest_list_tests --gtest_filter='*Device*:*device*' | grep -q '^  '
}

stage_tests() {
  local program
  part distributed run_tests distributed/distributed_test "$device_tests" each
  for program in compression/compression_test compression/methods_test; do
    if has_device_tests "$program"; then
      part "$program" run_tests "$program" '*Device*:*device*' each
    else
      part "$program" say "- ${program##*/} has no device tests"
    fi
  done
  ! grep -qs 'core_test.*failed' "$out/first.md" || part core run_tests core/core_test "$device_tests" each
}

# --------------------------------------------------------------------------------------------------------------- parity

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
# Steps of the reference take long on one thread; both devices have the threads, since a run keeps its own.
half=$(($(nproc) / 2 < 1 ? 1 : $(nproc) / 2))
parity_train=("$wisp" train "${resnet20[@]}" data.train_count=2560 data.test_count=256 train.max_steps="$steps" train.log_every=1
  train.eval_every=0 optimizer.lr=0.005 workers=2 threads="$half" compression.method=dgc compression.warmup=none)

# steps_of WHAT NAME OVERRIDE...: runs the steps into OUT/runs/NAME
steps_of() {
  local what=$1 name=$2
  shift 2
  [[ " $* " == *" --resume "* ]] || rm -rf "$out/runs/$name"
  check "$what" on_device timeout --foreground 180 "${parity_train[@]}" "$@" --out "$out/runs/$name"
}

# resumed FIRST SECOND: half of the steps on one device, the others on the other
resumed() {
  [[ -n $dry && $1 == cpu ]] || steps_of "ten steps on $1" "from_$1" device="$1" train.max_steps=10
  [[ -n $dry && $2 == cpu ]] || steps_of "resumed on $2" "from_$1" device="$2" --resume
  [[ -n $dry ]] || check "have the losses of the CPU" near "$out/runs/cpu" "$out/runs/from_$1" "$tolerance"
}

beside_cpu() {
  steps_of "the same on the CPU" cpu device=cpu
  check "$steps losses of ResNet-20 with dgc are the CPU's within 0.1 %" near "$out/runs/cpu" "$out/runs/device" "$tolerance"
}

again() {
  steps_of "the same again" again device=cuda
  [[ -n $dry ]] || check "leaves the same files" same_files "$out/runs/device" "$out/runs/again"
}

inline() {
  steps_of "inline" inline device=cuda compression.overlap=false
  [[ -n $dry ]] || check "leaves the files of overlapped" same_files "$out/runs/device" "$out/runs/inline"
}

stage_parity() {
  part device steps_of "a run on the device ends" device device=cuda
  [[ -n $dry ]] || part cpu beside_cpu
  part again again
  part inline inline
  part cuda_cpu resumed cuda cpu
  part cpu_cuda resumed cpu cuda
  rm -rf "$out/runs"
}

# --------------------------------------------------------------------------------------------------------------- faults

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
  timeout --foreground 100 "${processes[@]}" --out "$out/runs/killed" >"$log" 2>&1 &
  local launcher=$! worker=
  for _ in $(seq 50); do
    sleep 1
    kill -0 "$launcher" 2>/dev/null || break
    grep -q 'epoch 1' "$log" && worker=$(pgrep -n -f "wisp train .*$out/runs/killed") && break
  done
  [[ -n $worker ]] && kill -9 "$worker"
  wait "$launcher"
  local status=$?
  cat "$log"
  rm -rf "$out/runs"
  [[ -n $worker && $status -ne 0 && $status -ne 124 ]]
}

stage_faults() {
  # the largest activation has 1.6e9 numbers; all activations take some 200 GB
  local large=("$wisp" bench step "$configs/synthetic_resnet50.toml" model.depth=152 workers=1 data.side=224
    data.train_count=2048 train.batch=2048 device=cuda --seconds 1)
  local small=("$wisp" bench step "${resnet20[@]}" device=cuda workers=1 --seconds 1)
  if [[ -n $dry ]]; then
    part memory check "memory that runs out is an error" on_device "${large[@]}"
  else
    part memory check "memory that runs out is an error that says so" fails_with "out of memory" timeout --foreground 100 "${large[@]}"
  fi
  part afterwards check "afterwards a run works" on_device "${small[@]}"
  part payloads run_tests apps/malformed_payload_test '*Device*:*device*'
  if ! command -v mpirun >/dev/null || ! ldd "$wisp" | grep -q libmpi; then
    part peer left_out "no peer was killed: there is no mpirun here, or no MPI in the program"
  elif [[ -n $dry ]]; then
    part peer check "processes end, too" on_device "${processes[@]}" --out "$out/runs/killed"
  else
    part peer check "a killed peer ends the other process" killed_peer
  fi
}

# ---------------------------------------------------------------------------------------------------------------- train

train_words() {
  local directory=$out/runs/train_lm perplexity
  rm -rf "$directory"
  check "a language model trains for an epoch" on_device timeout --foreground 200 "$wisp" train "$configs/ptb_small.toml" \
    workers=1 train.epochs=1 device=cuda "data.path=$data" --out "$directory"
  [[ -z $dry ]] || return 0
  perplexity=$(json test_perplexity <"$directory/summary.json")
  say "  - test perplexity $perplexity; PyTorch's is 181 after its first epoch"
  check "it learns: 200 and less" holds "${perplexity:-0} > 0 && ${perplexity:-0} <= 200"
  rm -rf "$directory"
}

train_photos() {
  local config=("$configs/cifar10_resnet20.toml" device=cuda train.tf32=true) directory=$out/runs/train_$1 accuracy bar=''
  if [[ -n $tenth ]]; then
    config+=("data.path=$photos" train.epochs=6) bar=$photos_tenth
  elif [[ -n $photos ]]; then
    config+=("data.path=$photos" train.epochs=30) bar=$photos_whole
  else
    config+=(data.name=synthetic train.epochs=1)
  fi
  rm -rf "$directory"
  check "ResNet-20 trains with compression.method=$1" on_device timeout --foreground 200 "$wisp" train "${config[@]}" \
    compression.method="$1" --out "$directory"
  [[ -z $dry ]] || return 0
  accuracy=$(json test_accuracy <"$directory/summary.json")
  say "  - test accuracy $accuracy, $(json images_per_s <"$directory/summary.json") images/s"
  [[ -z $bar ]] || check "it learns: $bar and more" holds "${accuracy:-0} >= $bar"
  rm -rf "$directory"
}

stage_train() {
  if [[ -n $words || -n $dry ]]; then
    part words train_words
  else
    part words left_out "language model: no simple-examples/data in --data"
  fi
  [[ -n $photos ]] || part photos left_out "no cifar-10-batches-bin in --data: an epoch of drawn images"
  [[ -z $tenth ]] || part photos say "- six epochs of a tenth of CIFAR-10, each photo ten times an epoch"
  part none train_photos none
  part dgc train_photos dgc
}

# ------------------------------------------------------------------------------------------------------------- sanitize

# sanitized TOOL PROGRAM FILTER: whether the tool finds nothing in the tests, as far as it comes in 45 seconds
sanitized() {
  timeout --foreground 45 compute-sanitizer --tool "$1" --error-exitcode 1 "$build/tests/$2" --gtest_brief=1 \
    --gtest_filter="$3"
  case $? in
    0) say "- $1 finds nothing in ${2##*/}: yes" ;;
    124) left_out "$1 of ${2##*/} found nothing in 45 s, and was not done" ;;
    *) say "- $1 finds nothing in ${2##*/}: **no**" ;;
  esac
}

stage_sanitize() {
  local tool filter tests='DeviceLoops*:DeviceRowParts*:DeviceOps*' bench='DeviceCodecBench.SendsTheCpusBytes'
  if [[ -n $dry ]]; then
    part tests run_tests core/core_test "$tests"
    part methods run_tests distributed/distributed_test "$bench"
  elif ! command -v compute-sanitizer >/dev/null; then
    part tool left_out "there is no compute-sanitizer here"
  else
    for tool in memcheck racecheck initcheck; do
      # recurrent layers use NVIDIA's own kernels, which are not clean under the other tools
      [[ $tool == memcheck ]] && filter="$tests:*OwnKernels*" || filter=$tests
      part "$tool" sanitized "$tool" core/core_test "$filter"
    done
    part methods sanitized memcheck distributed/distributed_test "$bench"
  fi
}
