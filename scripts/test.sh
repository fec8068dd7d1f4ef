#!/bin/sh
# Builds Wisp with its tests in build/release and runs all of them; on a fresh Debian 12 it installs the packages first.
set -eu

cd -- "$(dirname -- "$0")/.."
scripts/install_packages.sh --tests
# A first build compiles folders as wholes (CONTRIBUTING.md), which takes half the time. A later one keeps what the folder has.
[ -f build/release/build.ninja ] || unity=-DCMAKE_UNITY_BUILD=ON
cmake --preset release -DWISP_TESTS=ON ${unity:-}
cmake --build --preset release
ctest --preset release
