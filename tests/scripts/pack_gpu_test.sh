#!/bin/sh
# Tests scripts/pack_gpu.sh with a program of a few lines: what it packs, and what it refuses with words. Needs no CUDA.
#
#   pack_gpu_test.sh ROOT
set -eu

pack_gpu=$1/scripts/pack_gpu.sh
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

fail() {
  echo "pack_gpu_test: $1" >&2
  exit 1
}
# program FILE WORDS: a program that says WORDS, whatever it is asked
program() {
  mkdir -p "$(dirname -- "$1")"
  printf '#!/bin/sh\necho "%s"\n' "$2" >"$1"
  chmod +x "$1"
}
# refused STATUS WORDS ARGUMENT...: pack_gpu.sh fails so with the arguments, and says WORDS
refused() {
  wanted=$1 words=$2 status=0
  shift 2
  "$pack_gpu" "$@" >"$work/said" 2>&1 || status=$?
  [ "$status" = "$wanted" ] || fail "expected status $wanted with $*, got $status: $(cat "$work/said")"
  grep -qF -e "$words" "$work/said" || fail "expected '$words' with $*, got: $(cat "$work/said")"
}

# the program is a script, which strip would refuse; packing without xz is as good, and quick
mkdir "$work/bin"
printf '#!/bin/sh\ncp "%s3" "%s2"\n' '$' '$' >"$work/bin/strip" # strip -o OUT FILE
printf '#!/bin/sh\ncat\n' >"$work/bin/xz"
chmod +x "$work/bin/strip" "$work/bin/xz"
PATH=$work/bin:$PATH
export PATH

build=$work/build
out=$work/out
refused 2 'usage: pack_gpu.sh OUT'
refused 2 'usage: pack_gpu.sh OUT' "$out" "$build" more
refused 2 'usage: pack_gpu.sh OUT' "$out" "$build" --data
refused 1 "no program $build/wisp" "$out" "$build"
program "$build/wisp" 'cuda        no training: there is no driver'
program "$build/tests/core/core_test" core
program "$build/tests/distributed/distributed_test" distributed
refused 1 'build target malformed_payload_test' "$out" "$build"
program "$build/tests/apps/malformed_payload_test" malformed
program "$build/tests/compression/methods_test" 'no device tests'
refused 1 'has neither simple-examples/data nor cifar-10-batches-bin' "$out" "$build" --data "$work"
[ ! -e "$out/contents" ] || fail "a refused pack left $out/contents behind"

# what travels: the program, tests with something to do, configs, words, a tenth of the photos
data=$work/data
mkdir -p "$data/simple-examples/data" "$data/cifar-10-batches-bin"
for part in train valid test; do echo words >"$data/simple-examples/data/ptb.$part.txt"; done
for file in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
  truncate -s 30730000 "$data/cifar-10-batches-bin/$file.bin"
done
"$pack_gpu" "$out" "$build" --data "$data" >"$work/said" || fail "a good build was not packed"
grep -q "$out: [0-9]* bytes of at most 55000000" "$work/said" || fail "the size is not told: $(cat "$work/said")"
tar -tf "$out/wisp_gpu.tar.xz" >"$work/files"
for file in wisp tests/core/core_test tests/distributed/distributed_test tests/apps/malformed_payload_test \
  apps/configs/cifar10_resnet20.toml data/simple-examples/data/ptb.valid.txt data/cifar-10-tenth/test_batch.bin; do
  grep -qx "$file" "$work/files" || fail "$file was not packed"
done
! grep -q methods_test "$work/files" || fail "methods_test has no device tests, and was packed"
grep -q '^ *3073000 ./data/cifar-10-tenth/data_batch_5.bin$' "$out/contents" || fail "expected 1,000 photos of each file"
"$pack_gpu" "$out" "$build" >/dev/null || fail "an earlier pack was not replaced"

truncate -s 56000000 "$data/simple-examples/data/ptb.train.txt"
refused 1 'bytes, more than 55000000' "$out" "$build" --data "$data"
[ ! -e "$out/wisp_gpu.tar.xz" ] || fail "a folder that is too large was kept"

mkdir "$work/mine"
echo mine >"$work/mine/notes"
refused 1 "$work/mine holds other files" "$work/mine" "$build"
program "$build/wisp" 'cuda        no training: this program lacks CUDA'
refused 1 '/wisp lacks CUDA' "$out" "$build"
program "$build/wisp" 'cpu         reference'
refused 1 'does not name the GPU among its devices' "$out" "$build"
printf '#!/bin/sh\nexit 1\n' >"$build/wisp"
refused 1 "$build/wisp does not start" "$out" "$build"
