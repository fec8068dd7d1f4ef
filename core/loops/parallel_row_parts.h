// A loop over the rows of a matrix, for kernels that process a row's columns alike:
//   struct Shared { … };  // as for parallel_small_teams
//   template <class Team>
//   WISP_HD void operator()(const Team& team, int64_t row, int64_t begin, int64_t end,
//                           Shared& shared) const;
// A call processes columns [begin, end) of a row, and all calls together cover all rows. On the CPU
// a call has a whole row. A device has more threads than rows, so long rows are cut. Any thread
// that may use the stream may call.
#pragma once

#include "core/loops/divisor.h"
#include "core/loops/parallel_small_teams.h"

namespace wisp {
namespace parallel {

constexpr int64_t kPartColumns = 512;  // default limit of a part on a device

template <class Kernel>
struct RowParts {
  using Shared = typename Kernel::Shared;
  Kernel kernel;
  int64_t columns, part_columns;
  Divisor parts;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t item, Shared& shared) const {
    const int64_t row = parts.quotient(item);
    const int64_t begin = (item - row * parts.value()) * part_columns;
    const int64_t end = begin + part_columns < columns ? begin + part_columns : columns;
    kernel(team, row, begin, end, shared);
  }
};

/// Columns of a part. All parts of a row have the same number, a multiple of kLanes, except the
/// last.
inline int64_t part_columns(bool device, int64_t columns, int64_t most = kPartColumns) {
  if (!device || columns <= most) return std::max<int64_t>(columns, 1);
  const int64_t parts = (columns + most - 1) / most;
  return ((columns + parts - 1) / parts + kLanes - 1) / kLanes * kLanes;
}

}  // namespace parallel

/// Calls the kernel for all rows. On a device a part has at most `most` columns.
template <class Kernel>
void parallel_row_parts(const Stream& stream, int64_t rows, int64_t columns, Kernel kernel,
                        int64_t most = parallel::kPartColumns) {
  const int64_t part = parallel::part_columns(stream.device().is_cuda(), columns, most);
  const Divisor parts(std::max<int64_t>((columns + part - 1) / part, 1));
  parallel_small_teams(stream, rows * parts.value(),
                       parallel::RowParts<Kernel>{kernel, columns, part, parts}, part);
}

}  // namespace wisp
