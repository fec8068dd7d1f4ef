#!/bin/sh
# Checks the include rules: the direction of folders and of the rooms (subfolders) in them, and the places of headers of
# other libraries, of the environment and of printing.
#
#   check_includes.sh [ROOT]
#
# Prints FILE:LINE and the rule for each violation; exit status 1 if there is one. tests/ may include anything.
set -eu

root=${1:-$(dirname -- "$0")/..}
cd -- "$root"
folders=
for folder in core layers models data compression distributed apps; do
  [ ! -d "$folder" ] || folders="$folders $folder"
done
[ -n "$folders" ] || { echo "check_includes: $root holds none of the folders" >&2; exit 1; }

# shellcheck disable=SC2016,SC2086 # awk's own $; folders are words
find $folders -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.in' \) -exec awk '
function fail(rule) {
  printf "%s:%d: %s: %s\n", FILENAME, FNR, rule, $0
  failed = 1
}
function only_in(header, places, name) {
  if (header_path ~ header && FILENAME !~ places) fail(name)
}
BEGIN {
  allowed["core"] = "core"
  allowed["layers"] = "core layers"
  allowed["models"] = "core layers models"
  allowed["data"] = "core data"
  allowed["compression"] = "core compression"
  allowed["distributed"] = "core compression distributed"
  allowed["apps"] = "core layers models data compression distributed apps"

  # The rooms of a folder: the rooms that each may include, beside itself. A folder of one room is not listed.
  rooms["core/base"] = ""
  rooms["core/device"] = "core/base core/cuda"
  rooms["core/tensor"] = "core/base core/device"
  tensors = "core/base core/device core/tensor"
  rooms["core"] = tensors " core/loops core/cpu core/cuda"
  rooms["core/loops"] = tensors " core/cuda"
  rooms["core/ops"] = rooms["core/cpu"] = rooms["core/emulated"] = tensors " core core/loops"
  rooms["core/cuda"] = tensors " core core/loops core/ops core/kernels"
  rooms["core/kernels"] = tensors " core core/loops core/ops"
  rooms["core/io"] = "core/base core/tensor"
  rooms["core/train"] = tensors " core core/io core/loops"
  rooms["core/emulated/include"] = ""

  rooms["data"] = ""
  rooms["data/images"] = rooms["data/text"] = rooms["data/speech"] = rooms["data/decoding"] = "data"
  rooms["data/photos"] = "data data/images data/decoding"

  rooms["compression"] = ""
  rooms["compression/quantize"] = rooms["compression/low_rank"] = "compression"
  rooms["compression/sparse"] = "compression compression/quantize"
  rooms["compression/methods"] = "compression compression/quantize compression/sparse compression/low_rank"

  rooms["distributed"] = "distributed/communicator distributed/exchange"
  rooms["distributed/communicator"] = ""
  rooms["distributed/exchange"] = "distributed/communicator"
  rooms["distributed/averaging"] = rooms["distributed/own_weights"] = rooms["distributed/bench"] = \
    "distributed distributed/communicator distributed/exchange"
  rooms["distributed/gossip"] = rooms["distributed/averaging"] " distributed/own_weights"

  rooms["apps"] = "apps/commands"
  rooms["apps/setup"] = rooms["apps/speech"] = "apps"
  rooms["apps/run"] = rooms["apps/lab"] = rooms["apps/survey"] = rooms["apps/reference"] = "apps apps/setup"
  rooms["apps/sweep"] = "apps apps/setup apps/run"
  rooms["apps/inference"] = "apps apps/setup apps/run apps/speech"
  rooms["apps/train"] = rooms["apps/interchange"] = "apps apps/setup apps/run apps/inference"
  rooms["apps/report"] = "apps apps/run"
  rooms["apps/report/page"] = "apps/run apps/report"
  rooms["apps/table"] = "apps apps/setup apps/run apps/report apps/report/page apps/sweep"
  rooms["apps/commands"] = "apps apps/setup apps/run apps/speech apps/inference apps/train apps/interchange apps/lab apps/survey apps/reference " \
    "apps/report apps/report/page apps/sweep apps/table"
}
function room_of(path) {
  sub(/\/[^\/]*$/, "", path)
  return path
}
FNR == 1 && FILENAME ~ /\/.*\// && !(room_of(FILENAME) in rooms) {
  fail(room_of(FILENAME) " is no room that scripts/check_includes.sh knows")
}
/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
  header_path = $0
  sub(/^[^<"]*[<"]/, "", header_path)
  sub(/[>"].*$/, "", header_path)

  split(FILENAME, place, "/")
  split(header_path, target, "/")
  if (target[1] == "tests" ||
      (target[1] in allowed && index(" " allowed[place[1]] " ", " " target[1] " ") == 0))
    fail(place[1] " does not include " target[1])
  room = room_of(FILENAME)
  other = room_of(header_path)
  if (target[1] == place[1] && other != room && other in rooms &&
      index(" " rooms[room] " ", " " other " ") == 0)
    fail(room " does not include " other)

  if (room == "distributed/communicator" && target[1] == "compression" && header_path != "compression/message.h")
    fail("of methods, transport knows messages only")

  only_in("^(cuda|cublas|cudnn|curand|cufft|cusparse|cub/|thrust/|nvtx)", "^core/(cuda/|emulated/|loops/parallel_cuda[.]h$)",
          "CUDA headers belong in core/cuda/, core/loops/parallel_cuda.h and what stands for CUDA, core/emulated/")
  only_in("^(oneapi/|dnnl)", "^core/cpu/", "oneDNN headers belong in core/cpu/")
  only_in("^kiss", "^core/cpu/", "kissfft headers belong in core/cpu/")
  only_in("^opencv", "^data/decoding/image_codec_opencv[.]cpp$",
          "OpenCV headers belong in data/decoding/image_codec_opencv.cpp")
  only_in("^jpeglib", "^data/decoding/jpeg_codec_turbo[.]cpp$",
          "libjpeg headers belong in data/decoding/jpeg_codec_turbo.cpp")
  only_in("^sndfile", "^data/speech/audio_codec_sndfile[.]cpp$", "libsndfile headers belong in data/speech/audio_codec_sndfile.cpp")
  only_in("^nccl", "^(distributed/communicator/nccl_connection[.]cpp$|core/emulated/)",
          "NCCL headers belong in distributed/communicator/nccl_connection.cpp and what stands for NCCL, core/emulated/")
  only_in("^mpi[.]h$", "^distributed/communicator/mpi_", "MPI headers belong in distributed/communicator/mpi_*")
}
/getenv[ \t]*\(/ {
  if (FILENAME != "distributed/launch.cpp") fail("environment variables are read in distributed/launch.cpp")
}
/(fmt::v?print|std::(v?f?printf|f?puts|f?putc|putchar|fwrite|cout|cerr|clog))[^A-Za-z_]/ {
  if (FILENAME != "core/io/output_streams.cpp")
    fail("names from files must not reach a terminal raw: print by core/io/output_streams.h")
}
END { exit failed }
' {} +
