#include "core/loops/ranges.h"

#include <algorithm>

#include "core/loops/device_table.h"
#include "core/loops/parallel.h"

namespace wisp {

Ranges::Ranges(const Stream& stream, MemoryPool& pool, std::span<const Range> ranges,
               int64_t value_bytes)
    : count_(std::ssize(ranges)),
      table_({count_ * static_cast<int64_t>(sizeof(Range))}, DType::u8, pool, stream.id()) {
  TableWriter table(stream, table_.raw());
  for (Range range : ranges) {
    const int64_t block = parallel::reduce_block(range.numel);
    range.first_block = blocks_;
    table.put(range);
    blocks_ += (range.numel + block - 1) / block;
  }
  table.finish();
  if (stream.device().is_cuda())
    partial_ = Tensor({std::max<int64_t>(blocks_, 1) * value_bytes}, DType::u8, pool, stream.id());
}

}  // namespace wisp
