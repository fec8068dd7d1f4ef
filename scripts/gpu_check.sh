#!/bin/bash
# Checks Wisp on this machine's GPU, a stage at a time: first what is known after four minutes, then why, then the rest.
#
#   gpu_check.sh OUT [--data DIR] [--peer SCRIPT] [--only STAGE] [--minutes N] [--dry]
#
# A call ends after N minutes (9), and the same call again goes on: five of them do it all. OUT gets report.md, which
# begins with what failed and what is slow, report.json, and a log of each stage. A stage has a process and a time limit
# of its own, and one that fails does not stop the next. A part of a stage that has ended is not run again. Stages that
# failed run again in a call that finds no other left. A stage that has passed runs again only if --only names it, the
# program has changed, or data or a peer that it left out is given now.
#
#   build     the packed program, or else program and tests, built for this GPU             20 minutes at most
#   first     devices; core_test's device tests; a second of each step; dgc's codec         4
#   why       the kernels of a step by name, if there is nsys or ncu                        5
#   parity    steps beside the CPU's; again; without overlap; saved here, resumed there     6
#   workers   four workers on one GPU, dgc, and deterministic convolutions                  3
#   codec     encode and decode of the other methods, 25 million gradients                  4
#   tests     device tests of distributed_test, and of others that have some                4
#   faults    memory that runs out, damaged payloads, a peer that is killed                 4
#   train     an epoch of words; ResNet-20, dense and dgc, on the photos that there are     6
#   peers     steps beside SCRIPT CASE --device cuda, where ours are near its recorded speed 6
#   sanitize  memory, races and uninitialised reads of some kernels (compute-sanitizer)     3
#
# BUILD names the build (build/cuda) or a folder of pack_gpu.sh, whose data are used without --data. DIR holds the
# unpacked data sets. A missing one is reported as left out, and the stage is "partial". --dry is for machines without a
# GPU: every command is started, and must fail because there is no GPU. Exit status 1 if a stage failed, 3 if the call
# ended before the last stage.
# shellcheck disable=SC2317 # the stages call functions that are here
set -uo pipefail

stages="build first why parity workers codec tests faults train peers sanitize"
declare -A minutes=([build]=20 [first]=4 [why]=5 [parity]=6 [workers]=3 [codec]=4 [tests]=4 [faults]=4 [train]=6
  [peers]=6 [sanitize]=3) # 45 after the build

usage() {
  sed -n '4s/^# *//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

out='' data='' peer='' only='' dry='' run='' call=9
while [[ $# -gt 0 ]]; do
  case $1 in
    --data | --peer | --only | --minutes | --run) [[ $# -ge 2 ]] || usage ;;&
    --data) data=$(realpath -- "$2") && shift ;;
    --peer) peer=$(realpath -- "$2") && shift ;;
    --only) only=$2 && shift ;;
    --minutes) call=$2 && shift ;;
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
[[ -n $out && $call =~ ^[1-9][0-9]*$ ]] || usage
[[ -z $only || " $stages " == *" $only "* ]] || { echo "gpu_check: no stage $only; there are: $stages" >&2 && exit 2; }
mkdir -p -- "$out" && out=$(realpath -- "$out")
self=$(realpath -- "${BASH_SOURCE[0]}")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
export PATH=$PATH:/usr/local/cuda/bin OMP_WAIT_POLICY=passive

# build and configs: of this checkout, or of what pack_gpu.sh packed, if that has not turned out useless here
build=$(realpath -m -- "${BUILD:-build/cuda}") configs=apps/configs packed='' libraries='' given=$data
if [[ -f $build/wisp_gpu.tar.xz ]]; then
  packed=$build
  [[ -n $data ]] || data=$packed/unpacked/data
  if [[ -f $out/useless ]]; then
    build=$PWD/build/cuda
  else
    build=$packed/unpacked configs=$packed/unpacked/apps/configs
    # CUDA's libraries may be those of Python wheels
    libraries=$build/lib$(python3 -c 'import glob, nvidia
for path in nvidia.__path__: print("".join(":" + lib for lib in sorted(glob.glob(path + "/*/lib"))), end="")' 2>/dev/null)
  fi
elif [[ -d deps ]]; then
  libraries=$PWD/deps/lib # made by pack_deps.sh
fi
wisp=$build/wisp

# say TEXT: adds a line to the stage's part of the report
say() { echo "$*" >>"$out/$run.part"; }

# left_out TEXT: reports a part that was left out, which makes the stage partial
left_out() { say "- left out: $*"; }

# part NAME COMMAND...: runs a part of the stage, unless an earlier call has finished it. What it says enters the report
# once it has ended, so that a part that was cut short leaves nothing behind.
part() {
  local name=$1
  shift
  ! grep -qsxF -e "$name" "$out/$run.parts" || return 0
  : >"$out/$run.part"
  "$@" || say "- $name: **failed**"
  cat "$out/$run.part" >>"$out/$run.md"
  echo "$name" >>"$out/$run.parts"
  rm -f "$out/$run.part"
}

partial=77 # status of a stage that left out a part
if [[ -n $run ]]; then
  peers_libraries=${LD_LIBRARY_PATH-}
  [[ -z $libraries ]] || export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  # shellcheck source=scripts/gpu_stages.sh
  source scripts/gpu_stages.sh
  # shellcheck source=scripts/gpu_timings.sh
  source scripts/gpu_timings.sh
  "stage_$run"
  ! grep -qE '\*\*(no|failed)\*\*' "$out/$run.md" || exit 1
  ! grep -q '^- left out: ' "$out/$run.md" || exit "$partial"
  exit 0
fi

# marked WORD...: the lines of the report that are marked with one of the words, after their stage
marked() {
  local stage
  for stage in $stages; do
    [[ ! -f $out/$stage.md ]] || grep -hE "\*\*($1)\*\*" "$out/$stage.md" |
      sed -E 's/^[ |-]*//; s/ *\| *$//; s/ *\| */; /g; s/\*\*//g; s/^(.{150}).*/\1…/' | sed "s/^/- $stage: /"
  done
}

# at_most COUNT: that many lines of the input, and how many more there are
at_most() {
  awk -v most="$1" 'NR <= most { print }
    END { if (NR > most) printf "- and %d more\n", NR - most; if (NR == 0) print "- nothing so far" }'
}

# report: writes report.md and report.json from the stages so far; the first 40 lines say what failed and what is slow
report() {
  local stage result seconds comma="" gpu
  gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -n 1)
  {
    echo "# Wisp on a GPU"
    echo
    echo "$sources, $(date -u +%F)${gpu:+, $gpu}"
    echo
    for stage in $stages; do
      if [[ -f $out/$stage.result ]]; then echo "$stage $(cut -d ' ' -f 1 "$out/$stage.result")"; else echo "$stage -"; fi
    done | paste -sd , | sed 's/,/, /g'
    printf '\n## What failed\n\n'
    {
      marked 'no|failed'
      for stage in $stages; do
        [[ -f $out/$stage.result ]] || continue
        read -r result _ <"$out/$stage.result"
        case $result in
          late) echo "- $stage: ran out of time" ;;
          FAILED) grep -qE '\*\*(no|failed)\*\*' "$out/$stage.md" || echo "- $stage: $(tail -n 1 "$out/$stage.log")" ;;
        esac
      done
    } | at_most 13
    printf '\n## What is slow\n\n'
    marked slow | at_most 13
    for stage in $stages; do
      [[ -f $out/$stage.result ]] || continue
      printf '\n## %s: %s\n\n' "$stage" "$(<"$out/$stage.result")"
      cat "$out/$stage.md"
      [[ ! -f $out/$stage.part ]] || cat "$out/$stage.part"
      grep -q '^\(FAILED\|late\)' "$out/$stage.result" || continue
      echo && tail -n 20 "$out/$stage.log" | cut -c -300 | sed 's/^/    /'
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

# Results of another program, or of --dry, are discarded.
if [[ -n $packed ]]; then
  sources="$(head -n 1 "$packed/contents"), packed ($(sha256sum <"$packed/wisp_gpu.tar.xz" | cut -c -8))"
else
  sources=$(git describe --always --dirty 2>/dev/null || cat deps/commit 2>/dev/null || echo 'no commit known')
fi
sources+=${dry:+, dry: there was no GPU}
[[ -f $out/sources && $(<"$out/sources") == "$sources" ]] || rm -f "$out"/*.result "$out/useless" "$out/steps"
echo "$sources" >"$out/sources"
# a partial stage runs again if other data or another peer is given
[[ -f $out/given && $(<"$out/given") == "$data $peer" ]] || grep -lsZ '^partial' "$out"/*.result | xargs -0r rm -f
echo "$data $peer" >"$out/given"
[[ -x $wisp ]] || rm -f "$out/build.result"

# result STAGE: the first word of its result, or nothing
result() { [[ ! -f $out/$1.result ]] || cut -d ' ' -f 1 "$out/$1.result"; }

# chosen STAGES: those to run now: what has no end yet, or else what failed; a failed build comes before all
chosen() {
  local stage open='' bad=''
  for stage in $1; do
    case $(result "$stage") in
      passed | partial) ;;
      FAILED | late) [[ $stage == build ]] && open+=" build" || bad+=" $stage" ;;
      *) open+=" $stage" ;;
    esac
  done
  echo "${open:-$bad}"
}

# run_stage STAGE SECONDS: runs the stage, which goes on if it was cut short, for as long as the call has time
run_stage() {
  local stage=$1 left=$2 begin=$SECONDS used=0 limit result ended
  case $(result "$stage") in
    unfinished | interrupted) [[ ! -f $out/$stage.seconds ]] || used=$(<"$out/$stage.seconds") ;;
    *) rm -f "$out/$stage".{md,log,part,parts,seconds,jsonl} ;;
  esac
  touch "$out/$stage.md"
  limit=$((minutes[$stage] * 60 - used))
  [[ $limit -ge 1 ]] || limit=1
  echo "interrupted $used s of ${minutes[$stage]} minutes at most" >"$out/$stage.result"
  report
  timeout -k 20 "$((limit < left ? limit : left))" "$self" "$out" --run "$stage" ${given:+--data "$given"} \
    ${peer:+--peer "$peer"} ${dry:+--dry} >>"$out/$stage.log" 2>&1 &
  child=$!
  wait "$child"
  ended=$?
  child=''
  case $ended in
    0) result=passed ;;
    "$partial") result=partial ;;
    124 | 137) [[ $limit -le $left ]] && result=late || result=unfinished ;;
    *) result=FAILED ;;
  esac
  used=$((used + SECONDS - begin))
  echo "$used" >"$out/$stage.seconds"
  echo "$result $used s of ${minutes[$stage]} minutes at most" >"$out/$stage.result"
  echo "gpu_check: $stage: $(<"$out/$stage.result")"
  report
}

# who ends this call ends the stage, which has a process group of its own
child=''
trap '[[ -z $child ]] || kill "$child"; report; exit 143' TERM INT HUP

status=0
for stage in ${only:-$(chosen "$stages")}; do
  left=$((call * 60 - SECONDS))
  if [[ $left -lt 15 ]]; then
    status=3
    break
  fi
  run_stage "$stage" "$left"
  case $(result "$stage") in
    passed | partial) ;;
    unfinished) status=3 && break ;;
    *) status=1 ;;
  esac
  if [[ $stage == build ]]; then
    [[ $status -eq 0 ]] || { echo "gpu_check: without a program there is nothing to check" && break; }
  fi
done
report
if [[ $status -eq 3 ]]; then
  echo "gpu_check: the $call minutes of this call are over; the same call goes on"
elif [[ -z $only ]] && grep -qsE '^(FAILED|late)' "$out"/*.result; then
  status=1
fi
exit "$status"
