#!/bin/sh
# The long form of the soak: random collectives over 4 threads and over 4 processes with random delays, every word checked,
# then a rank that dies, stalls, throws or calls something else in each kind of collective.
#
#   soak.sh [COUNT]
#
# COUNT is the number of collectives (100,000). Builds what it needs in build/release.
set -eu

cd -- "$(dirname -- "$0")/.."
count=${1:-100000}
tests=build/release/tests/distributed
cmake --preset release -DWISP_TESTS=ON >/dev/null
cmake --build --preset release --target soak soak_fault_test
export OMP_WAIT_POLICY=passive

"$tests/soak" "$count"
if command -v mpirun >/dev/null 2>&1; then
  mpirun -n 4 --oversubscribe --allow-run-as-root "$tests/soak" "$count"
else
  echo "soak: no mpirun here, processes are not tested" >&2
fi
"$tests/soak_fault_test" --gtest_brief=1
