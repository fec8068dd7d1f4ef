#include "apps/run/resize.h"

#include <vector>

#include "core/base/error.h"

namespace wisp {
namespace {

int64_t share(int64_t sum, int rank, int workers) {
  return sum / workers + (rank == 0 ? sum % workers : 0);
}

double share(double sum, int, int workers) { return sum / workers; }

/// Adds up in `Sum`, in rank order, and rounds once: the whole sum, or this rank's share of it.
template <class T, class Sum>
void add_up(const SavedState& state, std::span<const std::unique_ptr<CheckpointReader>> files,
            int rank, int workers) {
  T* values = state.tensor.data<T>();
  std::vector<Sum> sums(static_cast<size_t>(state.tensor.numel()));
  for (const auto& file : files) {
    file->read(state.name, state.tensor);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<Sum>(values[i]);
  }
  const bool whole = state.on_resize == OnResize::sum;
  for (size_t i = 0; i < sums.size(); ++i)
    values[i] = static_cast<T>(whole ? sums[i] : share(sums[i], rank, workers));
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
    case OnResize::redistribute_sum:
    case OnResize::sum:
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
