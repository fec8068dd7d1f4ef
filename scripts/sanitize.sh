#!/bin/sh
# The long form of the sanitizer stages: the whole suite under AddressSanitizer with UndefinedBehaviorSanitizer, then under
# ThreadSanitizer. Builds what it needs in build/asan and build/tsan.
#
#   sanitize.sh [ctest options...]
#
# ThreadSanitizer leaves out processes, because Open MPI is not instrumented. Beside the code of threads they have one
# file, which starts no threads, and AddressSanitizer sees it. It also leaves out learning_test, which would train for
# hours and has only threads that apps_test has too.
set -eu

cd -- "$(dirname -- "$0")/.."
for preset in asan tsan; do
  cmake --preset "$preset" -DWISP_TESTS=ON
  cmake --build --preset "$preset"
done
ctest --preset asan "$@"
ctest --preset tsan -E '^(mpi_test_.*|soak_processes|soak_fault_test|wire_bytes_test|processes_test|learning_test)$' "$@"
