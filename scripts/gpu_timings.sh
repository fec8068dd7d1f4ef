#!/bin/bash
# The stages of gpu_check.sh that time: first facts, why, workers, codec and peers. gpu_check.sh reads this file after
# gpu_stages.sh.
# shellcheck disable=SC2154,SC2034,SC2317 # set, read, and called by name, in the other two

# Cases of steps: PyTorch's speed and Wisp's of docs/gpu.md ("How fast"; H100, 52b9f6d, means of two), the bar for the ratio
# of both (docs/log.md), and the peer's case with its options. "-": none is recorded.
cases="resnet20_f32    -      -      -
       resnet20_tf32   50631  26348  1.15 resnet20 --mode graph
       resnet20_bf16   68433  24390  1.15 resnet20 --mode graph --dtype bf16
       resnet50_bf16   5375   5293   1    resnet50 --mode compile --dtype bf16 --batch 256
       alexnet_bf16    -      -      -
       vgg16_bf16      -      -      -
       lstm650_tf32    230385 166400 1    lstm650 --mode graph
       deepspeech_tf32 46357  44281  1.5  deepspeech_an4
       deepspeech_bf16 32732  49468  1.5  deepspeech_an4 --dtype bf16"
# Milliseconds of encode and decode of dgc with 25 million elements: PyTorch's, Wisp's, the bar.
codec_peer=0.73 codec_ours=0.86 codec_bar=0.45
peer_bar=0.85      # a peer runs where ours has at least this share of its recorded speed
own_bar=0.85       # of Wisp's recorded speed; rounds of one program differ by a tenth
codec_times_bar=3  # times a plain pass, encode and decode

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
    resnet50_* | alexnet_* | vgg16_*)
      ours=("$configs/synthetic_resnet50.toml" data.side=224 data.train_count=512 workers=1 train.batch=256
        data.test_count=256 train.deterministic=false)
      ;;&
    alexnet_*) ours+=(model.name=alexnet) ;;
    vgg16_*) ours+=(model.name=vgg model.depth=16 optimizer.lr=0.001) ;; # at 0.025 its loss becomes infinite
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
  local name=$1 their_speed own_speed bar their_case line rate remarks fallbacks
  if [[ -n $dry ]]; then
    dry_case "$name"
    return
  fi
  row_of "$name"
  line=$(time_ours "$name" 1)
  rate=$(json rate <<<"$line")
  remarks=$(tr '|\n' '/ ' <"$out/remarks" | cut -c -120)
  [[ -n $rate ]] || { say "| $name | **failed** | - | - | - | - | - | $remarks |" && return; }
  echo "$name $line" >>"$out/steps"
  fallbacks=$(json fallbacks <<<"$line")
  holds "${fallbacks:-1} == 0" || fallbacks+=" **slow**"
  say "| $name | $rate $(json unit <<<"$line"), $(json ms <<<"$line") ms | $(beside "$rate" "$own_speed" "$own_bar" "Wisp's") |" \
    "$(beside "$rate" "$their_speed" "$bar" "PyTorch's") | $(json peak_device_mb <<<"$line") MB |" \
    "$(json kernels <<<"$line") + $(json calls <<<"$line") | $fallbacks | $remarks |"
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
| a step | a second | Wisp's record | PyTorch's record | memory | kernels + calls | bf16 as f32 | remarks |
| --- | --- | --- | --- | --- | --- | --- | --- |"
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
