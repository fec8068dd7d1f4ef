#include "core/loops/ranges.h"

#include <algorithm>

#include "core/copy.h"
#include "core/loops/parallel.h"

namespace wisp {

Ranges::Ranges(const Context& context, std::span<const Range> ranges, int64_t value_bytes)
    : count_(std::ssize(ranges)),
      table_(context.empty({count_ * static_cast<int64_t>(sizeof(Range))}, DType::u8)) {
  write_from_host(context.stream, table_, [&](const Tensor& host) {
    auto* table = reinterpret_cast<Range*>(host.raw());
    for (const Range& range : ranges) {
      const int64_t block = parallel::reduce_block(range.numel);
      *table = range;
      (table++)->first_block = blocks_;
      blocks_ += (range.numel + block - 1) / block;
    }
  });
  if (context.stream.device().is_cuda())
    partial_ = context.empty({std::max<int64_t>(blocks_, 1) * value_bytes}, DType::u8);
}

}  // namespace wisp
