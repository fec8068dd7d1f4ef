#!/bin/sh
# Checks that the tree keeps the include rules, and that the checker finds each kind of violation.
#
#   include_direction_test.sh CHECKER ROOT
set -eu

checker=$1
failed=0

sh "$checker" "$2" || failed=1

fixture=$(mktemp -d)
trap 'rm -rf -- "$fixture"' EXIT

# refuses FILE LINE: the checker refuses a tree with this line, after a clean one, at this place
refuses() {
  rm -rf -- "${fixture:?}"/*
  mkdir -p -- "$fixture/${1%/*}"
  printf '// clean\n%s\n' "$2" >"$fixture/$1"
  if found=$(sh "$checker" "$fixture") || [ "${found#"$1:2: "}" = "$found" ]; then
    echo "include_direction_test: '$2' in $1 must be refused at $1:2, got '$found'" >&2
    failed=1
  fi
}

# accepts FILE LINE: the checker accepts a tree with this line only
accepts() {
  rm -rf -- "${fixture:?}"/*
  mkdir -p -- "$fixture/${1%/*}"
  printf '%s\n' "$2" >"$fixture/$1"
  sh "$checker" "$fixture" || {
    echo "include_direction_test: '$2' in $1 must be accepted" >&2
    failed=1
  }
}

refuses core/autograd.h '#include "layers/module.h"'
refuses core/ops/add.cpp '#include "data/loader.h"'
refuses layers/linear.h '#include "models/model.h"'
refuses models/mlp.cpp '#include "distributed/synchronizer.h"'
refuses data/loader.cpp '#include "layers/module.h"'
refuses compression/methods/topk.cpp '#  include "distributed/communicator/communicator.h"'
refuses distributed/exchange/cut.cpp '#include "models/model.h"'
refuses apps/wisp.cpp '#include "tests/support/tensors.h"'
refuses compression/methods/topk.cpp '#include <cuda_runtime.h>'
refuses core/loops/parallel.h '#include <cub/cub.cuh>'
refuses distributed/communicator/collective.cpp '#include <nccl.h>'
refuses core/backend.h '#include <oneapi/dnnl/dnnl.hpp>'
refuses compression/methods/fft.cpp '#include <kiss_fftr.h>'
refuses data/decoding/image_file.cpp '#include <opencv2/core.hpp>'
refuses data/loader.cpp '#include <jpeglib.h>'
refuses data/loader.cpp '#include <sndfile.h>'
refuses core/io/config.cpp 'const char* home = std::getenv("HOME");'
refuses apps/commands/eval.cpp '  fmt::print("{}\n", name);'
refuses apps/run/reporter.cpp '  std::fputs(text.c_str(), stderr);'
refuses core/io/metrics.cpp '  std::cerr << name;'

# Rooms of one folder.
refuses core/autograd.h '#include "core/io/config.h"'
refuses core/base/error.h '#include "core/device/device.h"'
refuses core/device/storage.h '#include "core/tensor/tensor.h"'
refuses core/tensor/tensor.h '#include "core/context.h"'
refuses core/loops/ranges.h '#include "core/context.h"'
refuses core/io/metrics.cpp '#include "core/train/sgd.h"'
refuses compression/policy.cpp '#include "compression/sparse/select.h"'
refuses compression/sparse/pack.cpp '#include "compression/low_rank/low_rank.h"'
refuses distributed/exchange/cut.h '#include "distributed/synchronizer.h"'
refuses distributed/communicator/link.h '#include "compression/compressor.h"'
refuses distributed/averaging/probe.h '#include "distributed/gossip/gossip.h"'
refuses apps/train/training.cpp '#include "apps/commands/commands.h"'
refuses distributed/launch.cpp '#include <mpi.h>'
accepts core/train/sgd.h '#include "core/io/config.h"'
accepts compression/methods/topk.cpp '#include "compression/sparse/sparse_code.h"'
accepts distributed/communicator/communicator.h '#include "compression/message.h"'
accepts distributed/gossip/gossip.h '#include "distributed/exchange/step_plan.h"'
mkdir -p "$fixture/core/cellar"
echo '// clean' >"$fixture/core/cellar/wine.cpp"
if sh "$checker" "$fixture" >/dev/null; then
  echo "include_direction_test: a room without a rule must be refused" >&2
  failed=1
fi

accepts apps/train/trainer.cpp '#include "distributed/synchronizer.h"'
accepts distributed/exchange/cut.cpp '#include "compression/compressor.h"'
accepts core/cuda/check.h '#include <cuda_runtime.h>'
accepts core/emulated/runtime.cpp '#include <cuda_runtime.h>'
accepts core/loops/parallel_cuda.h '#include <cuda_runtime.h>'
accepts core/cpu/onednn_conv.h '#include <oneapi/dnnl/dnnl.hpp>'
accepts core/cpu/kiss_fft.cpp '#include <kiss_fftr.h>'
accepts data/decoding/image_codec_opencv.cpp '#include <opencv2/core.hpp>'
accepts data/decoding/jpeg_codec_turbo.cpp '#include <jpeglib.h>'
accepts data/speech/audio_codec_sndfile.cpp '#include <sndfile.h>'
accepts distributed/launch.cpp 'const char* rank = std::getenv("RANK");'
accepts core/io/output_streams.cpp '  std::fwrite(text.data(), 1, text.size(), stream);'
accepts core/io/metrics.cpp '  std::snprintf(text, sizeof text, "%d", number);'
accepts distributed/communicator/mpi_communicator.cpp '#include <mpi.h>'
accepts distributed/communicator/mpi_session.h '#include <mpi.h>'
exit "$failed"
