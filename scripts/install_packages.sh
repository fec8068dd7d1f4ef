#!/bin/sh
# Installs those Debian 12 packages that Wisp is built with and that are missing.
#
#   install_packages.sh [--tests | --fuzz | --cache]
#
# --tests adds the packages of tests and checks, with MPI for workers as processes. --fuzz adds those of
# scripts/fuzz.sh. --cache adds a compiler cache. Uses sudo if not root. Exit status 1, with the reason, if packages are
# still missing at the end.
set -eu

packages="g++ cmake ninja-build libdnnl-dev libkissfft-dev libopencv-imgcodecs-dev libjpeg-dev libsndfile1-dev libfmt-dev
  libtomlplusplus-dev nlohmann-json3-dev libcli11-dev make pkgconf git curl ca-certificates zstd"
case ${1:-} in
  '') ;;
  --tests) packages="$packages libgtest-dev clang-format clang-tidy shellcheck libopenmpi-dev openmpi-bin
    iproute2 zsh fish" ;;
  --fuzz) packages="$packages libgtest-dev clang-16 libclang-rt-16-dev libomp-16-dev" ;;
  --cache) packages="$packages ccache" ;;
  *)
    echo "usage: install_packages.sh [--tests | --fuzz | --cache]" >&2
    exit 2
    ;;
esac

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

find_missing() {
  missing=
  for package in $packages; do installed "$package" || missing="$missing $package"; done
}

fail() {
  echo "install_packages: $1" >&2
  exit 1
}

command -v apt-get >/dev/null 2>&1 ||
  fail "no apt-get here. Wisp is built on Debian 12; install the counterparts of: $packages"
find_missing
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || fail "not root, and no sudo. As root: apt-get install$missing"
  as_root=sudo
fi
# apt_get ARGUMENT...: runs apt-get quietly; its output appears only if it fails
apt_get() {
  words=$($as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=2 \
    -o DPkg::Lock::Timeout=120 "$@" </dev/null 2>&1) || {
    echo "$words" | tail -n 5 >&2
    return 1
  }
}

echo "install_packages: installing$missing"
apt_get update || echo "install_packages: the package lists could not be refreshed; trying with the old ones" >&2
# shellcheck disable=SC2086 # packages are words
apt_get install -y --no-install-recommends $missing || true
find_missing
[ -z "$missing" ] || fail "could not install$missing (see above; is there a network and a Debian mirror?)"
