#!/bin/sh
# Finds or fetches CIFAR-10 (binary version) and prints the folder that holds its six files.
#
#   get_cifar10.sh [DIR]
#
# With DIR the files must be in DIR, or in its folder cifar-10-batches-bin. Without DIR the script tries $WISP_DATA,
# data-cache/ of the repository, the packs of a shared/data folder beside the repository, and the official archive (162
# MB). It unpacks the last two into data-cache/. Exit status 1, with the reason in one line on stderr, if there is none.
set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=$root/data-cache
packs=$root/../shared/data
folder=cifar-10-batches-bin
url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
md5=c32a1d4ab5d03f1284b67883e8d87530

fail() {
  echo "get_cifar10: NO CIFAR-10: $1" >&2
  exit 1
}

# has_files DIR: whether the six files are there, each with its size
has_files() {
  for file in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
    [ -f "$1/$file.bin" ] && [ "$(wc -c <"$1/$file.bin")" -eq 30730000 ] || return 1
  done
}

# found DIR: prints DIR or its folder and ends the script if the files are there
found() {
  for place in "$1/$folder" "$1"; do
    if has_files "$place"; then
      (CDPATH='' cd -- "$place" && pwd)
      exit 0
    fi
  done
}

download() {
  command -v curl >/dev/null 2>&1 || fail "none found on this machine, and curl is missing"
  archive=$cache/cifar-10-binary.tar.gz
  mkdir -p -- "$cache" || fail "cannot make $cache"
  echo "get_cifar10: downloading $url" >&2
  reason=$(curl -fsSL --connect-timeout 10 --speed-limit 20000 --speed-time 30 --max-time 1800 \
    -o "$archive.part" "$url" 2>&1) || {
    rm -f -- "$archive.part"
    fail "none found on this machine, and the download failed ($reason)"
  }
  sum=$(md5sum <"$archive.part" | cut -d ' ' -f 1)
  if [ "$sum" != "$md5" ]; then
    rm -f -- "$archive.part"
    fail "the downloaded archive has MD5 $sum, expected $md5"
  fi
  tar -xzf "$archive.part" -C "$cache" || fail "cannot unpack $archive.part"
  rm -f -- "$archive.part"
}

if [ $# -gt 0 ]; then
  found "$1"
  fail "$1 does not hold the six files, of 30730000 bytes each"
fi
[ -z "${WISP_DATA:-}" ] || found "$WISP_DATA"
found "$cache"
if [ -f "$packs/unpack.sh" ] && sh "$packs/unpack.sh" "$cache" cifar10 >&2; then
  found "$cache"
fi
download
found "$cache"
fail "the unpacked archive lacks some of the six files"
