#!/bin/sh
# The long form of the sanitizer stages: the whole suite under AddressSanitizer with UndefinedBehaviorSanitizer, then under
# ThreadSanitizer. Builds what it needs in build/asan and build/tsan.
#
#   sanitize.sh [ctest options...]
#
# Left out under ThreadSanitizer: processes, because Open MPI is not instrumented (what they add to threads is one file without
# threads of its own, and AddressSanitizer sees it), and learning_test, which would train for hours and has no threads that
# apps_test has not.
set -eu

cd -- "$(dirname -- "$0")/.."
for preset in asan tsan; do
  cmake --preset "$preset" -DWISP_TESTS=ON
  cmake --build --preset "$preset"
done
ctest --preset asan "$@"
ctest --preset tsan -E '^(mpi_test_.*|soak_processes|soak_fault_test|wire_bytes_test|processes_test|learning_test)$' "$@"
