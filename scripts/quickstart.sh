#!/bin/sh
# From a fresh Debian 12 to a comparison: installs packages, builds the program, trains ResNet-20 with 4 workers, dense and
# with QSGD, each without a link limit and over an emulated slow link, and prints the table.
#
#   quickstart.sh [CIFAR10_DIR]
#
# Without CIFAR-10 (see get_cifar10.sh) it trains on the built-in synthetic images. Runs go to runs/quickstart/.
set -eu

# 30 Mbit/s: a step's 1.6 MB of dense traffic per worker take 0.43 s, two to three times the step's computation.
slow="link.gbit_per_s=0.03 link.latency_us=200"
# One epoch has 390 steps. The rate falls at step 98.
short="train.epochs=1 train.max_steps=120 train.eval_every=0 train.log_every=20
  schedule.kind=multi_step schedule.milestones=[0.25]"
# QSGD sends four times less and delays nothing. On 5,000 images held out of training it is as accurate as dense after these
# steps; DGC, which delays most of a gradient, needs longer runs (README.md, docs/results.md).
qsgd="compression.method=qsgd"

cd -- "$(dirname -- "$0")/.."
cat <<'END'
quickstart: 1. installs missing Debian packages, and builds the program in build/release: some 10 minutes on 2 cores
quickstart: 2. finds or downloads CIFAR-10 (170 MB)
quickstart: 3. trains ResNet-20 four times with 4 workers, dense and with QSGD, without and with an emulated link of
quickstart:    30 Mbit/s: 120 steps each, some 5 minutes together
quickstart: 4. prints a table of accuracy, bytes and times; the runs stay in runs/quickstart
END
scripts/install_packages.sh

[ -f build/release/build.ninja ] || cmake --preset release -DWISP_TESTS=OFF -DCMAKE_UNITY_BUILD=ON
cmake --build --preset release --target wisp

echo "quickstart: looking for CIFAR-10"
if folder=$(scripts/get_cifar10.sh "$@" 2>build/cifar10.log); then
  data="data.path=$folder"
else
  reason=$(tail -n 1 build/cifar10.log)
  echo "quickstart: ${reason#get_cifar10: }: TRAINING ON THE BUILT-IN SYNTHETIC IMAGES INSTEAD" >&2
  data="data.name=synthetic"
fi

# train NAME OVERRIDE...
train() {
  name=$1
  shift
  echo "quickstart: $name"
  # shellcheck disable=SC2086 # overrides are words
  build/release/wisp train apps/configs/cifar10_resnet20.toml workers=4 $short "$data" "$@" \
    --out "runs/quickstart/$name" --overwrite
}

# shellcheck disable=SC2086 # overrides are words
{
  train dense compression.method=none
  train qsgd $qsgd
  train dense-slow-link compression.method=none $slow
  train qsgd-slow-link $qsgd $slow
}

printf '\n4 workers, 120 steps each; slow link: 30 Mbit/s per worker and direction\n'
cd runs/quickstart
../../build/release/wisp report dense qsgd dense-slow-link qsgd-slow-link
printf '\nNext: build/release/wisp report runs/quickstart/* --html report.html, and README.md, "Daily use"\n'
