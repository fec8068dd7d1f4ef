#!/bin/bash
# Installs the present build, moves it, and uses it as a user would: a project (the examples) and tests through CMake, a
# program through pkg-config, the headers beside folders of the same names.
#
#   install_test.sh SOURCE BUILD CXX GENERATOR
set -euo pipefail

source=$1 build=$2 cxx=$3 generator=$4
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

fail() {
  echo "install_test: $1" >&2
  exit 1
}

cmake --install "$build" --prefix "$work/first" >"$work/install.log"
prefix=$work/elsewhere
mv "$work/first" "$prefix"

# No file holds the path where it was built or first installed, except debug information.
! grep -rlIF -e "$source" -e "$build" -e "$work/first" "$prefix" || fail "these files hold a path of the build"
[[ $(sed -n 's/^CMAKE_BUILD_TYPE:[^=]*=//p' "$build/CMakeCache.txt") != Release ]] ||
  ! grep -rlF -e "$source" -e "$build" "$prefix" || fail "these files hold a path of the build"

wisp=$prefix/bin/wisp
"$wisp" config "$prefix/share/wisp/configs/cifar10_resnet20.toml" workers=2 >/dev/null
# Read to its end: a reader that leaves at the first match makes the program fail.
[[ $(cd / && "$wisp" table) == *$'\n| dgc-cifar10 '* ]] || fail "the installed program does not find its tables"
for completion in bash-completion/completions/wisp zsh/site-functions/_wisp fish/vendor_completions.d/wisp.fish; do
  [[ $("$wisp" completion "${completion%%[-/]*}") == "$(<"$prefix/share/$completion")" ]] ||
    fail "the installed $completion is not the program's"
done

word() { printf '%b' "$(printf '%08x' "$1" | sed 's/../\\x&/g')"; }
# digits SPLIT COUNT: images without ink and labels of 0, in the format of MNIST's files
digits() {
  { word 0x803 && word "$2" && word 28 && word 28 && head -c $((784 * $2)) /dev/zero; } >"$work/$1-images-idx3-ubyte"
  { word 0x801 && word "$2" && head -c "$2" /dev/zero; } >"$work/$1-labels-idx1-ubyte"
}
digits train 64
digits t10k 32

# A user's project: its program has a model, a layer, a data set and a method that Wisp does not have.
examples=$prefix/share/wisp/examples
cmake -S "$examples" -B "$work/build" -G "$generator" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log" || fail "$(<"$work/configure.log")"
cmake --build "$work/build" >"$work/build.log" || fail "$(<"$work/build.log")"
"$work/build/my_wisp" train "$examples/mnist.toml" data.path="$work" train.batch=32 train.max_steps=2 --quiet \
  --out "$work/run"
grep -q '"steps": 2,' "$work/run/summary.json" || fail "two steps make this summary: $(<"$work/run/summary.json")"
# a byte per element, and a header of 16 bytes
grep -q '"bytes_encoded": 5100.0' "$work/run/summary.json" || fail "fp8 makes this of it: $(<"$work/run/summary.json")"
loop=$("$work/build/example_loop") || fail "example_loop ends with $?"
grep -Eq '^step 200: loss 0\.[0-3][0-9]*, [0-9]+ bytes sent instead of [0-9]+$' <<<"$loop" ||
  fail "example_loop did not learn in 200 steps: $loop"
symbols=$(nm -C "$work/build/example_loop")
! grep -E '\b(cuda[A-Z]|cuMem|nccl[A-Z])|emulated' <<<"$symbols" || fail "example_loop holds the stand-in for CUDA"

# A user's tests of a layer and a method, with the kit of the guides.
mkdir "$work/tests"
echo "cmake_minimum_required(VERSION 3.25)
project(own_tests LANGUAGES CXX)
find_package(wisp 0.1 REQUIRED)
add_executable(own_test $source/tests/examples/fp8_test.cpp $source/tests/examples/prelu_test.cpp)
wisp_kernels(own_test $examples/fp8.cpp $examples/prelu.cpp)
target_include_directories(own_test PRIVATE $prefix/share/wisp)
wisp_test_kit(own_test)
target_link_libraries(own_test PRIVATE wisp::train)" >"$work/tests/CMakeLists.txt"
cmake -S "$work/tests" -B "$work/tests/build" -G "$generator" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_PREFIX_PATH="$prefix" >"$work/tests.log" || fail "$(<"$work/tests.log")"
cmake --build "$work/tests/build" >"$work/tests.log" || fail "$(<"$work/tests.log")"
"$work/tests/build/own_test" --gtest_brief=1 || fail "tests of the installed kit"

# Another version than the one asked for is refused.
mkdir "$work/later"
echo 'cmake_minimum_required(VERSION 3.25)
project(later LANGUAGES CXX)
find_package(wisp 99.0 REQUIRED)' >"$work/later/CMakeLists.txt"
! cmake -S "$work/later" -B "$work/later/build" -G "$generator" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix" \
  >"$work/later.log" 2>&1 || fail "version 99.0 was found"
grep -q 'considered but not accepted' "$work/later.log" || fail "$(<"$work/later.log")"

# Every header can be included by itself, and beside a user's own folders of the same names.
for own in core/ops.h core/tensor/tensor.h data/loader.h models/model.h; do
  mkdir -p "$work/own/${own%/*}"
  echo '#error a header of the user' >"$work/own/$own"
done
(cd "$prefix/include" && find wisp -name '*.h' ! -path '*cuda*' -printf '#include <%p>\n') >"$work/own/all.cpp"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name wisp.pc)")
export PKG_CONFIG_PATH
read -ra cflags <<<"$(pkg-config --cflags wisp)"
read -ra libs <<<"$(pkg-config --libs wisp)"
"$cxx" -I "$work/own" "${cflags[@]}" -fsyntax-only "$work/own/all.cpp" || fail "the headers cannot be included"

# pkg-config, with the compiler alone.
"$cxx" -O1 "${cflags[@]}" "$examples/train.cpp" -o "$work/train" "${libs[@]}"
cp "$examples/train.toml" "$work"
(cd "$work" && ./train) | tail -n 1 | grep -q 'fewer than dense$' || fail "the program of pkg-config did not train"
again=0
(cd "$work" && ./train) >"$work/again.log" 2>&1 || again=$?
if [[ $again -ne 1 ]] || ! grep -q 'holds a run already' "$work/again.log"; then
  fail "a second run: $again, $(<"$work/again.log")"
fi
echo "install_test: passed"
