#include "core/ops/packed_rows.h"

#include <algorithm>

#include "core/loops/parallel.h"

namespace wisp {
namespace {

/// Numbers from the host that travel to the device as a kernel's members.
struct Upload {
  static constexpr int64_t kMost = 256;
  int64_t number[kMost];
  int64_t* into;
  WISP_HD void operator()(int64_t i) const { into[i] = number[i]; }
};

}  // namespace

Tensor first_rows(Context& context, const std::vector<int64_t>& rows) {
  const Tensor table = context.empty({std::ssize(rows) + 1}, DType::i64);
  Upload part{};
  int64_t row = 0;
  for (int64_t begin = 0; begin < table.numel(); begin += Upload::kMost) {
    const int64_t count = std::min(Upload::kMost, table.numel() - begin);
    for (int64_t i = 0; i < count; ++i) {
      if (begin + i > 0) row += rows[static_cast<size_t>(begin + i - 1)];
      part.number[i] = row;
    }
    part.into = table.data<int64_t>() + begin;
    parallel_for(context.stream, count, part);
  }
  return table;
}

}  // namespace wisp
