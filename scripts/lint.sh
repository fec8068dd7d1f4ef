#!/bin/sh
# Runs the checks beyond the compiler's: format of all files, clang-tidy on changed ones, include rules, prose, flags, paths,
# scripts.
#
#   lint.sh [BASE]
#
# clang-tidy reads the C++ files that differ from commit BASE (HEAD~1; none if there is no such commit, as in a shallow
# clone), with the commands of build/lint, which is configured here. BASE "all" means all files: half an hour and more.
set -eu

cd -- "$(dirname -- "$0")/.."
base=${1:-HEAD~1}
commands=build/lint/compile_commands.json
failed=0

# verdict NAME STATUS
verdict() {
  if [ "$2" -eq 0 ]; then
    echo "lint: $1: clean"
  else
    echo "lint: $1: FAILED" >&2
    failed=1
  fi
}

# absent NAME PATTERN: no tracked file has a line like this
absent() {
  status=0
  git grep -nIE -e "$2" -- . ':!LICENSE' && status=1
  verdict "$1" "$status"
}

# changed_sources: the .cpp files to read; a changed header is read through one file that includes it
changed_sources() {
  if [ "$base" = all ]; then
    git ls-files '*.cpp'
    return
  fi
  git rev-parse -q --verify "$base^{commit}" >/dev/null || return 0
  git diff --name-only --diff-filter=d "$base" -- '*.cpp' '*.h' | while read -r file; do
    case $file in
      *.cpp) echo "$file" ;;
      *) if [ -f "${file%.h}.cpp" ]; then echo "${file%.h}.cpp"; else
        git grep -lF "#include \"$file\"" -- '*.cpp' | head -n 1
      fi ;;
    esac
  done | sort -u
}

# tidy: reads the changed files that a release build compiles
tidy() {
  cmake --preset release -B build/lint >/dev/null || return 1
  changed_sources | while read -r file; do
    ! grep -qF "\"$PWD/$file\"" "$commands" || echo "$file"
  done >build/lint_files
  echo "lint: clang-tidy reads $(wc -l <build/lint_files) files"
  # without g++'s precompiled headers, and the warnings and the parameter that only g++ has
  mkdir -p build/lint_commands
  sed -E 's/ -Winvalid-pch -include [^ ]*cmake_pch\.hxx//; s/ -Wno-(restrict|stringop-[a-z]+)| --param=[^ ]*//g' "$commands" \
    >build/lint_commands/compile_commands.json
  # g++'s omp.h, because clang's own needs the libomp of clang-tidy's very version; one attribute in it is g++'s alone
  mkdir -p build/lint_include
  ln -sf "$(g++ -print-file-name=include/omp.h)" build/lint_include/omp.h
  # shellcheck disable=SC2016 # expanded by the inner shell
  xargs -r -n 1 -P "$(nproc)" sh -c '
    words=$(clang-tidy --quiet -p build/lint_commands "--extra-arg=-isystem$PWD/build/lint_include" \
      "--extra-arg=-D__malloc__(...)=" "$1" 2>/dev/null) ||
      { echo "$words"; exit 1; }' tidy <build/lint_files
}

status=0
git ls-files -z '*.cpp' '*.h' '*.cpp.in' | xargs -0 clang-format --dry-run -Werror || status=1
verdict "format" "$status"
status=0
tidy || status=1
verdict "clang-tidy" "$status"
status=0
scripts/check_includes.sh || status=1
verdict "includes" "$status"
status=0
scripts/check_docs.sh || status=1
verdict "docs" "$status"
absent "flags for one machine" '-m(arch|tune|cpu)='
absent "paths of one machine" '(^|[^A-Za-z0-9_.$}])/(home|root|tmp|work|Users)/'
if command -v shellcheck >/dev/null 2>&1; then
  status=0
  git ls-files -z '*.sh' '.ci/run' | xargs -0 shellcheck || status=1
  verdict "scripts" "$status"
fi
exit "$failed"
