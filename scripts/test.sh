#!/bin/sh
# Builds Wisp with its tests in build/release and runs all of them; on a fresh Debian 12 it installs the packages first.
set -eu

cd -- "$(dirname -- "$0")/.."
scripts/install_packages.sh --tests
# A first build compiles the sources of a folder as one (CONTRIBUTING.md), in two thirds of the time. Later ones go on as begun.
if [ -f build/release/build.ninja ]; then
  cmake --preset release -DWISP_TESTS=ON
else
  cmake --preset release -DWISP_TESTS=ON -DCMAKE_UNITY_BUILD=ON
fi
cmake --build --preset release
ctest --preset release
