#include "distributed/averaging/gradient_squares.h"

#include "core/loops/parallel_rows.h"
#include "distributed/loops.h"

namespace wisp {
namespace {

struct AddSquare {
  const float* gradient;
  const float* before;  // null for the first micro-batch
  float* square;
  WISP_HD void operator()(int64_t i) const {
    const float delta = before ? gradient[i] - before[i] : gradient[i];
    square[i] = (before ? square[i] : 0.0f) + delta * delta;
  }
};

}  // namespace

GradientSquares::GradientSquares(Context& compute, FlatParameters& parameters, bool wanted)
    : compute_(compute), parameters_(parameters) {
  if (wanted) square_ = parameters.state("square");
}

void GradientSquares::add_micro_batch() {
  if (!square_.defined()) return;
  const Tensor& gradient = parameters_.grad();
  if (!before_.defined()) before_ = compute_.empty(gradient.shape(), gradient.dtype());
  const float* before = micro_batches_ > 0 ? before_.data<float>() : nullptr;
  parallel_for(compute_.stream, gradient.numel(),
               AddSquare{gradient.data<float>(), before, square_.data<float>()});
  parallel_for(compute_.stream, gradient.numel(),
               CopyInto{gradient.data<float>(), before_.data<float>()});
  ++micro_batches_;
}

void GradientSquares::finish(const Stream& stream, std::span<const int> segments) const {
  if (!square_.defined()) return;
  const float* before = micro_batches_ > 0 ? before_.data<float>() : nullptr;
  const auto each_segment = [&](const auto& put) {
    for (const int id : segments) {
      const Segment& segment = parameters_.segment(id);
      put(segment.offset, segment.offset + segment.numel);
    }
  };
  parallel_for_ranges(stream, each_segment,
                      AddSquare{parameters_.grad().data<float>(), before, square_.data<float>()});
}

}  // namespace wisp
