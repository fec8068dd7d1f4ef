#include "apps/run/resize.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/error.h"

namespace wisp {
namespace {

int64_t share(int64_t sum, int rank, int workers) {
  return sum / workers + (rank == 0 ? sum % workers : 0);
}

double share(double sum, int, int workers) { return sum / workers; }

/// Adds values up as `Sum`, in order of ranks, and rounds this rank's share once.
template <class T, class Sum>
void add_up(const SavedState& state, std::span<const std::unique_ptr<CheckpointReader>> files,
            int rank, int workers) {
  T* values = state.tensor.data<T>();
  std::vector<Sum> sums(static_cast<size_t>(state.tensor.numel()));
  for (const auto& file : files) {
    file->read(state.name, state.tensor);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<Sum>(values[i]);
  }
  for (size_t i = 0; i < sums.size(); ++i)
    values[i] = static_cast<T>(share(sums[i], rank, workers));
}

/// Gathers the part that `state` names from the files' parts, which may be cut differently.
void gather_part(const SavedState& state,
                 std::span<const std::unique_ptr<CheckpointReader>> files) {
  const TensorPart wanted = part_of_name(state.name).value();
  int64_t found = 0;
  for (const auto& file : files) {
    for (const std::string& name : file->names()) {
      const std::optional<TensorPart> there = part_of_name(name);
      if (!there || there->whole != wanted.whole) continue;
      const int64_t begin = std::max(wanted.begin, there->begin);
      const int64_t end = std::min(wanted.end, there->end);
      if (begin >= end) continue;
      const Tensor part({there->end - there->begin}, state.tensor.dtype());
      file->read(name, part);
      const int64_t size = size_of(part.dtype());
      std::memcpy(state.tensor.raw() + (begin - wanted.begin) * size,
                  part.raw() + (begin - there->begin) * size,
                  static_cast<size_t>((end - begin) * size));
      found += end - begin;
    }
  }
  WISP_CHECK(found == wanted.end - wanted.begin,
             "resume: the files of the checkpoint's ranks hold ", found, " elements of ",
             state.name, ", expected ", wanted.end - wanted.begin);
}

}  // namespace

void read_resized(const SavedState& state, std::span<const std::unique_ptr<CheckpointReader>> files,
                  int rank, int workers) {
  switch (state.on_resize) {
    case OnResize::repeat:
      return files[static_cast<size_t>(rank) % files.size()]->read(state.name, state.tensor);
    case OnResize::zero:
      state.tensor.clear();
      return;
    case OnResize::owner:
      return gather_part(state, files);
    case OnResize::redistribute_sum:
      switch (state.tensor.dtype()) {
        case DType::f32:
          return add_up<float, double>(state, files, rank, workers);
        case DType::f64:
          return add_up<double, double>(state, files, rank, workers);
        case DType::i64:
          return add_up<int64_t, int64_t>(state, files, rank, workers);
        default:
          throw Error(concat("resume: ", state.name, " is ", name_of(state.tensor.dtype()),
                             ", which cannot be added up for another number of workers"));
      }
  }
}

}  // namespace wisp
