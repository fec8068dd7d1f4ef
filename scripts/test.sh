#!/bin/sh
# Builds Wisp with its tests in build/release and runs all of them; on a fresh Debian 12 it installs the packages first.
set -eu

cd -- "$(dirname -- "$0")/.."
scripts/install_packages.sh --tests
cmake --preset release -DWISP_TESTS=ON
cmake --build --preset release
ctest --preset release
