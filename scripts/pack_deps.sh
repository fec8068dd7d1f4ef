#!/bin/sh
# Packs the dependencies of a build into a folder that travels with the sources to a machine without network: toml++,
# oneDNN with the libraries that it links, and the packages of fmt, nlohmann-json, CLI11 and GoogleTest. That machine
# needs the same architecture and a C library at least as new.
#
#   pack_deps.sh [DIR]
#
# DIR (deps) gets include/ and lib/. cmake -DWISP_DEPS_DIR=DIR uses them, and so does gpu_check.sh if DIR is deps/. The
# files come from this machine, where scripts/install_packages.sh has installed them.
set -eu

cd -- "$(dirname -- "$0")/.."
to=${1:-deps}
headers=/usr/include

fail() {
  echo "pack_deps: $1" >&2
  exit 1
}

install_file() {
  mkdir -p "$to/$(dirname -- "${1#/usr/}")"
  cp -P "$1" "$to/${1#/usr/}"
}

[ -f "$headers/toml++/toml.h" ] || fail "no $headers/toml++/toml.h; scripts/install_packages.sh installs it"
[ -f "$headers/oneapi/dnnl/dnnl.hpp" ] || fail "no oneDNN in $headers; scripts/install_packages.sh installs it"
library=$(find /usr/lib -name libdnnl.so | head -n 1)
[ -n "$library" ] || fail "no libdnnl.so below /usr/lib"

rm -rf "$to"
mkdir -p "$to/include" "$to/lib"
cp -r "$headers/toml++" "$headers/oneapi" "$to/include"
cp "$headers"/dnnl*.h "$headers"/dnnl*.hpp "$to/include"
name=$(objdump -p "$library" | sed -n 's/^ *SONAME *//p')
cp -L "$library" "$to/lib/$name"
ln -s "$name" "$to/lib/libdnnl.so"
opencl=$(ldd "$library" | sed -n 's/.*libOpenCL[^ ]* => \([^ ]*\).*/\1/p')
[ -z "$opencl" ] || cp -L "$opencl" "$to/lib/libOpenCL.so.1"
# CMake finds packages below lib/ and share/, laid out as below /usr.
for package in libfmt-dev libfmt9 nlohmann-json3-dev libcli11-dev libgtest-dev; do
  files=$(dpkg -L "$package" 2>/dev/null) || fail "no package $package here; scripts/install_packages.sh --tests installs it"
  for file in $files; do
    case $file in
      /usr/share/doc/*) continue ;;
      /usr/include/* | /usr/lib/* | /usr/share/cmake/*) [ -d "$file" ] || install_file "$file" ;;
    esac
  done
done
git describe --always --dirty >"$to/commit"
echo "pack_deps: $to: $(du -sh "$to" | cut -f 1)"
