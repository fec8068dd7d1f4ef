#!/bin/sh
# Packs a program that was built for a GPU, its device tests, the configs and some data into a folder for another machine.
# There gpu_check.sh finds them by BUILD=OUT, and builds nothing.
#
#   pack_gpu.sh OUT [BUILD] [--data DIR]
#
# OUT gets wisp_gpu.tar.xz and contents, which names the program and lists the files. BUILD (build/cuda) is a build on a
# machine of the same kind, without a GPU perhaps, that links few libraries:
#
#   cmake --preset cuda -B BUILD -DCMAKE_CUDA_ARCHITECTURES=90-real -DWISP_ONEDNN=OFF -DWISP_OPENCV=OFF \
#     -DWISP_JPEG=OFF -DWISP_SNDFILE=OFF -DWISP_MPI=OFF
#   cmake --build BUILD --target wisp core_test distributed_test malformed_payload_test
#
# The libraries fmt and OpenMP travel too; those of CUDA and C++ must be there. DIR holds the unpacked data sets: the
# words of Penn Treebank travel, and the first tenth of each file of CIFAR-10. A folder of more than 55 MB is refused.
set -eu

most=55000000 # bytes of OUT
record=3073   # bytes of a photo of CIFAR-10
archive=wisp_gpu.tar.xz
tests='core/core_test distributed/distributed_test apps/malformed_payload_test'
perhaps='compression/compression_test compression/methods_test' # travel if they have device tests

fail() {
  echo "pack_gpu: $1" >&2
  exit 1
}

usage() {
  echo "usage: pack_gpu.sh OUT [BUILD] [--data DIR]" >&2
  exit 2
}

out='' build='' data=''
while [ $# -gt 0 ]; do
  case $1 in
    --data)
      [ $# -ge 2 ] || usage
      data=$2
      shift
      ;;
    -*) usage ;;
    *)
      if [ -z "$out" ]; then
        out=$1
      elif [ -z "$build" ]; then
        build=$1
      else
        usage
      fi
      ;;
  esac
  shift
done
[ -n "$out" ] || usage
root=$(cd -- "$(dirname -- "$0")/.." && pwd)
build=${build:-$root/build/cuda}

[ -x "$build/wisp" ] || fail "no program $build/wisp: build target wisp, or name another build"
for test in $tests; do
  [ -x "$build/tests/$test" ] || fail "no $build/tests/$test: build target ${test##*/}"
done
if [ -e "$out" ] && [ ! -f "$out/contents" ] && [ -n "$(ls -A "$out")" ]; then
  fail "$out holds other files: name a new folder, or an earlier pack"
fi
version=$("$build/wisp" --version) || fail "$build/wisp does not start"

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# add PROGRAM NAME: the program without its symbols, and the libraries that another machine lacks
add() {
  mkdir -p "$work/$(dirname -- "$2")" "$work/lib"
  strip -o "$work/$2" "$1" || fail "strip cannot read $1"
  ldd "$1" 2>/dev/null | grep -E '^[[:space:]]*lib(fmt|gomp)\.so' >"$work/needs" || true
  while read -r library _ path _; do
    [ -f "$path" ] || fail "$1 needs $library, which is not on this machine"
    cp -L "$path" "$work/lib/$library"
  done <"$work/needs"
}

add "$build/wisp" wisp
for test in $tests; do
  add "$build/tests/$test" "tests/$test"
done
for test in $perhaps; do
  [ -x "$build/tests/$test" ] || continue
  if "$build/tests/$test" --gtest_list_tests --gtest_filter='*Device*:*device*' | grep -q '^  '; then
    add "$build/tests/$test" "tests/$test"
  fi
done
rm -f "$work/needs"
words=$(LD_LIBRARY_PATH="$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$work/wisp" devices 2>&1) ||
  fail "the packed program does not start: $words"
case $words in
  *'lacks CUDA'*) fail "$build/wisp lacks CUDA: configure with cmake --preset cuda" ;;
  *cuda*) ;;
  *) fail "$build/wisp does not name the GPU among its devices: $words" ;;
esac

mkdir -p "$work/apps"
cp -R "$root/apps/configs" "$work/apps/configs"
if [ -n "$data" ]; then
  words=$data/simple-examples/data photos=$data/cifar-10-batches-bin
  [ -f "$words/ptb.train.txt" ] || [ -f "$photos/test_batch.bin" ] ||
    fail "$data has neither simple-examples/data nor cifar-10-batches-bin"
  if [ -f "$words/ptb.train.txt" ]; then
    mkdir -p "$work/data/simple-examples/data"
    cp "$words"/ptb.train.txt "$words"/ptb.valid.txt "$words"/ptb.test.txt "$work/data/simple-examples/data"
  fi
  if [ -f "$photos/test_batch.bin" ]; then
    mkdir -p "$work/data/cifar-10-tenth"
    for file in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
      head -c $((1000 * record)) "$photos/$file.bin" >"$work/data/cifar-10-tenth/$file.bin"
    done
  fi
fi

mkdir -p "$out"
rm -rf -- "${out:?}/$archive" "${out:?}/contents" "${out:?}/unpacked"
(cd "$work" && tar -cf - --owner=0 --group=0 --mode=a+rX -- *) | xz -6 -T0 >"$out/$archive"
bytes=$(wc -c <"$out/$archive")
if [ "$bytes" -gt "$most" ]; then
  rm -f "$out/$archive"
  fail "$out would have $bytes bytes, more than $most: build for one architecture, or leave out --data"
fi
{
  echo "wisp $version"
  (cd "$work" && find . -type f -exec wc -c {} \;) | sort -k 2
} >"$out/contents"
echo "pack_gpu: $out: $bytes bytes of at most $most, wisp $version"
