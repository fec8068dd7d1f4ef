#!/bin/bash
# The stages of gpu_check.sh, which reads this file: it sets out, build, configs, wisp, packed, data, peer, dry and run, and
# has part(), say() and left_out().
# shellcheck disable=SC2154,SC2317 # set, and called by name, in gpu_check.sh

# Cases of steps: PyTorch's speed and Wisp's of docs/gpu.md ("How fast"; H100, 52b9f6d, means of two), the bar for the ratio
# of both (docs/log.md), and the peer's case with its options. "-": none is recorded.
cases="resnet20_f32    -      -      -
       resnet20_tf32   50631  26348  1.15 resnet20 --mode graph
       resnet20_bf16   68433  24390  1.15 resnet20 --mode graph --dtype bf16
       resnet50_bf16   5375   5293   1    resnet50 --mode compile --dtype bf16 --batch 256
       lstm650_tf32    230385 166400 1    lstm650 --mode graph
       deepspeech_tf32 46357  44281  1.5  deepspeech_an4
       deepspeech_bf16 32732  49468  1.5  deepspeech_an4 --dtype bf16"
# Milliseconds of encode and decode of dgc with 25 million elements: PyTorch's, Wisp's, the bar.
codec_peer=0.73 codec_ours=0.86 codec_bar=0.45
peer_bar=0.85      # a peer runs where ours has at least this share of its recorded speed
own_bar=0.85       # of Wisp's recorded speed; rounds of one program differ by a tenth
codec_times_bar=3  # times a plain pass, encode and decode
photos_whole=0.85  # test accuracy after 30 epochs that shows that it learns
photos_tenth=0.4   # the same of a tenth of the photos; a guess, since none was measured

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
  local file i
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
    for i in 1 2 3 4 5 6 7 8 9 10; do cat "$file"; done >"$packed/unpacked/data/repeated/cifar-10-batches-bin/${file##*/}" || return
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

# ---------------------------------------------------------------------------------------------------------------- steps

# drawn_words DIR: files like Penn Treebank's, of 10,000 classes with unknown words and ends of lines, at random
drawn_words() {
  local part
  [[ ! -f $1/ptb.test.txt ]] || return 0
  mkdir -p -- "$1"
  for part in train valid test; do
    awk -v seed="$part" 'BEGIN {
      srand(length(seed))
      for (i = 1; i <= 9998; ++i) printf "w%d%s", i, i % 20 ? " " : "\n"
      for (i = 1; i <= 20000; ++i) printf "w%d%s", 1 + int(9998 * rand()), i % 20 ? " " : "\n"
    }' >"$1/ptb.$part.txt"
  done
}

# utterances DIR: eight utterances of 400 frames and 40 letters, as noise in files without a header, and their manifest
utterances() {
  [[ ! -f $1/manifest.jsonl ]] || return 0
  mkdir -p -- "$1"
  local i
  for i in 1 2 3 4 5 6 7 8; do
    head -c 127680 /dev/urandom >"$1/$i.raw" # 399 strides of 160 samples of 16 bits
    echo "{\"audio\": \"$i.raw\", \"text\": \"$(printf 'ABCDEFGH%.0s' 1 2 3 4 5)\"}"
  done >"$1/manifest.jsonl"
}

# set_case NAME: sets ours to the configuration and overrides of a step. As in the peer: free choice of algorithms, tied
# weights, and TF32 where it says f32
set_case() {
  local sounds=$out/utterances texts=${words:-$out/words}
  case $1 in
    resnet20_4*) ours=("${resnet20[@]}" workers=4 train.batch=128 train.deterministic=false) ;;
    resnet20_*) ours=("${resnet20[@]}" workers=1 train.batch=128 train.deterministic=false) ;;
    resnet50_*)
      ours=("$configs/synthetic_resnet50.toml" data.side=224 data.train_count=512 workers=1 train.batch=256
        data.test_count=256 train.deterministic=false)
      ;;
    lstm650_*)
      [[ -n $words ]] || drawn_words "$texts"
      ours=("$configs/ptb_medium.toml" model.tied=true model.loss=mean optimizer.momentum=0.9 optimizer.lr=0.01 clip.norm=0
        workers=1 "data.path=$texts")
      ;;
    deepspeech_*)
      utterances "$sounds"
      ours=("$configs/an4_deepspeech_lstm.toml" data.name=speech data.raw_rate=16000 "data.train=$sounds/manifest.jsonl"
        "data.test=$sounds/manifest.jsonl" workers=1 optimizer.lr=1e-4 clip.norm=0 model.conv_bias=false
        train.deterministic=false)
      ;;
  esac
  case $1 in
    *_tf32*) ours+=(train.tf32=true) ;;
    *_bf16*) ours+=(train.precision=bf16) ;;
  esac
  case $1 in
    *_dgc) ours+=(compression.method=dgc compression.warmup=none) ;;
    *_deterministic) ours+=(train.deterministic=true) ;;
  esac
}

# dry_case NAME: with --dry, whether the step's keys are known and it ends for want of a device
dry_case() {
  local ours
  set_case "$1"
  check "keys of $1 are known" "$wisp" config "${ours[@]}" train.backend=reference # the reference has bf16 on any CPU
  check "$1 is timed" on_device "$wisp" bench step "${ours[@]}" device=cuda --seconds 1
}

# time_ours NAME SECONDS, time_peer CASE OPTION...: the JSON line of a timed step; time_peer also compiles. What the program
# says beside it is in OUT/remarks.
time_ours() {
  local ours
  set_case "$1"
  timeout --foreground 60 "$wisp" bench step "${ours[@]}" device=cuda --seconds "$2" --json 2>"$out/remarks" |
    tee -a "$out/$run.jsonl"
  cat "$out/remarks" >&2
}
time_peer() {
  LD_LIBRARY_PATH=$peers_libraries timeout --foreground 150 python3 "$peer" "$@" --device cuda --seconds 3 |
    tee -a "$out/$run.jsonl"
}

# row_of NAME: sets their_speed, own_speed, bar and their_case from the table of cases
row_of() { read -r _ their_speed own_speed bar their_case < <(grep -E "^ *$1 " <<<"$cases"); }

# beside RATE RECORDED BAR WHOSE: a cell with the ratio, marked where it is below the bar
beside() {
  [[ $2 != - ]] || { echo - && return; }
  awk -v rate="$1" -v recorded="$2" -v bar="$3" -v whose="$4" 'BEGIN {
    printf "%.2f of %s %d, bar %s%s\n", rate / recorded, whose, recorded, bar, rate / recorded < bar ? " **slow**" : "" }'
}

first_step() {
  local name=$1 their_speed own_speed bar their_case line rate remarks
  if [[ -n $dry ]]; then
    dry_case "$name"
    return
  fi
  row_of "$name"
  line=$(time_ours "$name" 1)
  rate=$(json rate <<<"$line")
  remarks=$(tr '|\n' '/ ' <"$out/remarks" | cut -c -120)
  [[ -n $rate ]] || { say "| $name | **failed** | - | - | - | - | $remarks |" && return; }
  echo "$name $line" >>"$out/steps"
  say "| $name | $rate $(json unit <<<"$line"), $(json ms <<<"$line") ms | $(beside "$rate" "$own_speed" "$own_bar" "Wisp's") |" \
    "$(beside "$rate" "$their_speed" "$bar" "PyTorch's") | $(json peak_device_mb <<<"$line") MB |" \
    "$(json kernels <<<"$line") + $(json calls <<<"$line") | $remarks |"
}

# ---------------------------------------------------------------------------------------------------------------- codec

codec_bench=("$wisp" bench codec --numel 25000000 --ratio 0.001 device=cuda)

# times KEY LINE: milliseconds of the key, and how many times a plain pass that is
times() {
  awk -v ms="$(json "$1_ms" <<<"$2")" -v limit="$(json "$1_limit_ms" <<<"$2")" -v bar="${3-}" 'BEGIN {
    printf "%.2f ms, %.1f x%s\n", ms, ms / limit, (bar && ms > bar * limit) ? " **slow**" : "" }'
}

# codec METHOD: a row of the table of methods
codec() {
  local line
  line=$(timeout --foreground 60 "${codec_bench[@]}" --seconds 1 --method "$1" --json | tee -a "$out/$run.jsonl")
  [[ $line == *encode_ms* ]] || { say "| $1 | **failed** | | |" && return; }
  say "| $1 | encode $(times encode "$line" "$codec_times_bar") | decode $(times decode "$line" "$codec_times_bar") |" \
    "of four $(times decode4 "$line") |"
}

first_codec() {
  local line sum slow=""
  if [[ -n $dry ]]; then
    check "dgc is timed" on_device "${codec_bench[@]}" --method dgc --seconds 1
    return
  fi
  line=$(timeout --foreground 60 "${codec_bench[@]}" --method dgc --seconds 1 --json | tee -a "$out/$run.jsonl")
  [[ $line == *encode_ms* ]] || { say "- dgc: **failed**" && return; }
  sum=$(compute "$(json encode_ms <<<"$line") + $(json decode_ms <<<"$line")")
  ! holds "$sum > $codec_bar" || slow=" **slow**"
  say "
- dgc, 25 million elements: $sum ms, bar $codec_bar$slow; recorded: Wisp $codec_ours, PyTorch $codec_peer" \
    "(encode $(times encode "$line"), decode $(times decode "$line"), of four $(times decode4 "$line"))"
}

# Each method has a process of its own, so one that fails does not end the others.
stage_codec() {
  local method methods=none
  [[ -n $dry ]] || part heading say "- x: times a plain pass over the bytes, bar $codec_times_bar

| method | encode | decode | decode of four |
| --- | --- | --- | --- |"
  methods=$("$wisp" bench codec --all --numel 1000 --seconds 0 --json | json method | sort -u | grep -vx dgc)
  [[ -n $methods ]] || methods="list of methods"
  [[ -z $dry ]] || methods=topk
  for method in $methods; do
    if [[ -n $dry ]]; then
      part "$method" check "$method is timed" on_device "${codec_bench[@]}" --seconds 1 --method "$method"
    else
      part "$method" codec "$method"
    fi
  done
}

# ---------------------------------------------------------------------------------------------------------- first facts

devices() {
  "$wisp" devices | sed 's/^/    /' >>"$out/$run.part"
  say ""
}

stage_first() {
  local name names
  part devices devices
  part tests run_tests core/core_test "$device_tests"
  [[ -n $dry ]] || part heading say "
| a step | a second | Wisp's record | PyTorch's record | memory | kernels + calls | remarks |
| --- | --- | --- | --- | --- | --- | --- |"
  names=$(awk '{ print $1 }' <<<"$cases")
  for name in $names; do part "$name" first_step "$name"; done
  part dgc first_codec
}

# ------------------------------------------------------------------------------------------------------------------ why

# kernel_table LEAST: of lines "NS NAME" in the order of launches, the kernels of the last step: the shortest period of at
# least LEAST launches. If there is none, those of all launches.
kernel_table() {
  awk -v least="$1" '
    {
      ns = $1
      sub(/^[^ ]* /, "")
      gsub(/\(anonymous namespace\)::|wisp::|void |\|/, "")
      gsub(/_GLOBAL__N__[0-9a-f_]*[a-z_0-9]*::/, "")
      name[++n] = substr($0, 1, 110)
      time[n] = ns
    }
    END {
      if (n == 0) exit 1
      for (after = 0; after <= 20 && !period; ++after) {  # launches after the last step
        end = n - after
        for (p = least; p <= end / 2 && !period; ++p) {
          for (i = end; i > end - p && name[i] == name[i - p]; --i);
          if (i == end - p) period = p
        }
      }
      if (!period) end = n
      for (i = end - (period ? period : n) + 1; i <= end; ++i) {
        if (!(name[i] in count)) order[++kinds] = name[i]
        ++count[name[i]]
        sum[name[i]] += time[i]
        all += time[i]
      }
      for (i = 1; i <= kinds; ++i) {  # the 16 longest
        for (j = i + 1; j <= kinds; ++j) if (sum[order[j]] > sum[order[i]]) { t = order[i]; order[i] = order[j]; order[j] = t }
        if (i > 16) { rest += sum[order[i]]; launches += count[order[i]]; continue }
        printf "| `%s` | %d | %.3f | %.1f %% |\n", order[i], count[order[i]], sum[order[i]] / 1e6, 100 * sum[order[i]] / all
      }
      if (launches) printf "| %d others | %d | %.3f | %.1f %% |\n", kinds - 16, launches, rest / 1e6, 100 * rest / all
      printf "| %s | %d | %.3f | 100 %% |\n", period ? "all of a step" : "all launches seen, which are no step", period ? period : n, all / 1e6
    }'
}

# The launches of some steps as lines "NS NAME", by either profiler.
by_nsys() {
  timeout --foreground 90 nsys profile -t cuda -o "$out/profile" --force-overwrite true \
    "$wisp" bench step "${ours[@]}" device=cuda --seconds 0 >&2 || return
  nsys stats --report cuda_gpu_trace --format csv --force-export true "$out/profile.nsys-rep" 2>/dev/null | awk -F , '
    /^Start/ { for (i = 1; i <= NF; ++i) if ($i ~ /^Duration/) duration = i; last = NF; next }
    duration && NF >= last { ns = $duration; for (i = 1; i < last; ++i) sub(/^[^,]*,/, ""); gsub(/^"|"$/, ""); print ns, $0 }'
}
by_ncu() {
  timeout --foreground 120 ncu --csv --log-file "$out/profile.csv" --metrics gpu__time_duration.sum --print-units base \
    --print-kernel-base demangled --clock-control none --launch-skip "$((2 * $1))" --launch-count "$((7 * $1 / 2 + 50))" \
    "$wisp" bench step "${ours[@]}" device=cuda --seconds 0 >&2 || return
  awk -F '","' '
    /^"ID"/ { for (i = 1; i <= NF; ++i) if ($i == "Kernel Name") name = i; next }
    name && NF > name { ns = $NF; gsub(/[",]/, "", ns); print ns, $name }' "$out/profile.csv"
}

kernels_of() {
  local ours line kernels calls step tool table
  line=$(grep -s "^$1 " "$out/steps" | tail -n 1)
  [[ -n $line ]] || line=$(time_ours "$1" 0)
  kernels=$(json kernels <<<"$line" | cut -d . -f 1) calls=$(json calls <<<"$line" | cut -d . -f 1)
  [[ -n $kernels && -n $calls ]] || { say "- $1: **failed**: no step to look into" && return; }
  step=$((kernels + calls * 3 / 2)) # launches, about: a call of a library launches one or more kernels
  [[ $step -le 2500 ]] || step=2500
  set_case "$1"
  for tool in $profilers; do
    "by_$tool" "$step" >"$out/launches" || true
    table=$(kernel_table "$((kernels + calls / 2))" <"$out/launches") && break
  done
  rm -f "$out"/profile.* "$out/launches"
  say "$1, by $tool; the step takes $(json ms <<<"$line") ms"
  say ""
  if [[ -z $table ]]; then
    say "- $1: **failed**: $profilers gave no times"
  else
    say "| kernel | launches | ms | share |
| --- | --- | --- | --- |
$table
"
  fi
}

stage_why() {
  local name profilers='' tool
  for tool in nsys ncu; do
    ! command -v "$tool" >/dev/null || profilers+=" $tool"
  done
  [[ -n $profilers ]] || part profilers left_out "kernels by name: neither nsys nor ncu is here, and the program has no such table"
  for name in resnet20_tf32 resnet50_bf16 lstm650_tf32 deepspeech_bf16; do
    if [[ -n $dry ]]; then
      part "$name" dry_case "$name"
    elif [[ -n $profilers ]]; then
      part "$name" kernels_of "$name"
    fi
  done
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

# --------------------------------------------------------------------------------------------------- workers and peers

# compare NAME BAR CASE =CASE | OPTION...: two rounds in turn with another case of ours, or with the peer's case and options.
# Marks where both rounds together do not reach BAR times the other's rate.
compare() {
  local name=$1 bar=$2 case=$3 mine theirs mine_sum=0 their_sum=0 row='' line memory='' their_memory=- ratio=-
  shift 3
  if [[ -n $dry ]]; then
    dry_case "$case"
    return
  fi
  for _ in 1 2; do
    line=$(time_ours "$case" 2)
    mine=$(json rate <<<"$line") memory=$(json peak_device_mb <<<"$line")
    if [[ $1 == =* ]]; then
      line=$(time_ours "${1#=}" 2)
      their_memory=$(json peak_device_mb <<<"$line")
    else
      line=$(time_peer "$@")
      their_memory=$(json peak_gpu_mb <<<"$line")
    fi
    theirs=$(json rate <<<"$line")
    row+=" ${mine:-**failed**} : ${theirs:-**failed**} |"
    mine_sum+=" + ${mine:-none}" their_sum+=" + ${theirs:-none}"
  done
  if [[ "$mine_sum $their_sum" != *none* ]]; then
    ratio=$(compute "($mine_sum) / ($their_sum)")
    [[ $bar == - ]] || holds "$ratio >= $bar" || ratio+=" **slow**"
  fi
  say "| $name |$row ratio $ratio | bar $bar | ${memory:-**failed**} : ${their_memory:-**failed**} MB |"
}

comparison="| a second, ours : the other's | round 1 | round 2 | ratio | bar | MB |
| --- | --- | --- | --- | --- | --- |"

stage_workers() {
  [[ -n $dry ]] || part heading say "$comparison"
  part "4 workers" compare "ResNet-20 tf32, 4 workers x 32 : 1 x 128" 0.6 resnet20_4_tf32 =resnet20_tf32
  part dgc compare "dgc : dense, 4 workers x 32" 0.7 resnet20_4_tf32_dgc =resnet20_4_tf32
  part deterministic compare "ResNet-20 bf16, deterministic : free" - resnet20_bf16_deterministic =resnet20_bf16
}

# beside_peer NAME: compares where the first facts are near the peer's recorded speed, or were not found
beside_peer() {
  local their_speed own_speed bar their_case rate
  row_of "$1"
  rate=$(grep -s "^$1 " "$out/steps" | tail -n 1 | json rate)
  [[ -n $rate || -n $dry ]] || rate=$(time_ours "$1" 1 | json rate)
  if [[ -z $dry ]] && ! holds "${rate:-0} >= $peer_bar * $their_speed"; then
    say "| $1 | not run: ours, ${rate:-none}, is below $peer_bar of PyTorch's recorded $their_speed | | | | |"
    return
  fi
  # shellcheck disable=SC2086 # the case and its options
  compare "$1" "$bar" "$1" $their_case
}

dgc_peer() {
  local ms ours
  ours=$(json encode_ms <"$out/first.jsonl" | tail -n 1)
  ours=$(compute "${ours:-0} + $(json decode_ms <"$out/first.jsonl" | tail -n 1)")
  if ! holds "$ours > 0 && $ours * $peer_bar <= $codec_peer"; then
    say "| dgc | not run: ours, $ours ms, is beyond PyTorch's recorded $codec_peer ms / $peer_bar | | | | |"
    return
  fi
  ms=$(time_peer dgc | json ms)
  say "| dgc, ms | $ours : ${ms:-**failed**} | | | bar of ours $codec_bar | |"
}

stage_peers() {
  local name names
  [[ -n $peer || -n $dry ]] || { part peer left_out "no --peer to compare with" && return; }
  [[ -n $dry ]] || part heading say "$comparison"
  names=$(awk '$2 != "-" { print $1 }' <<<"$cases")
  for name in $names; do part "$name" beside_peer "$name"; done
  [[ -n $dry ]] || part dgc dgc_peer
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
      [[ $tool == memcheck ]] && filter="$tests:*KernelBackend*" || filter=$tests
      part "$tool" sanitized "$tool" core/core_test "$filter"
    done
    part methods sanitized memcheck distributed/distributed_test "$bench"
  fi
}
