// A loop over the rows of a matrix, for kernels that treat a row's columns alike:
//   struct Shared { … };  // as of parallel_small_teams
//   template <class Team>
//   WISP_HD void operator()(const Team& team, int64_t row, int64_t begin, int64_t end,
//                           Shared& shared) const;
// treats columns [begin, end) of a row. Together the calls are all of all rows. On the CPU a call
// has a whole row; a device, which has more threads than rows, cuts long ones.
#pragma once

#include "core/loops/divisor.h"
#include "core/loops/parallel_small_teams.h"

namespace wisp {
namespace parallel {

constexpr int64_t kPartColumns = 512;  // at most, of a device, unless a call says otherwise

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

/// Columns of a part: parts of a row have as many, in whole lanes, but for the last one.
inline int64_t part_columns(bool device, int64_t columns, int64_t most = kPartColumns) {
  if (!device || columns <= most) return std::max<int64_t>(columns, 1);
  const int64_t parts = (columns + most - 1) / most;
  return ((columns + parts - 1) / parts + kLanes - 1) / kLanes * kLanes;
}

}  // namespace parallel

/// `most` columns at most are a part on a device.
template <class Kernel>
void parallel_row_parts(const Stream& stream, int64_t rows, int64_t columns, Kernel kernel,
                        int64_t most = parallel::kPartColumns) {
  const int64_t part = parallel::part_columns(stream.device().is_cuda(), columns, most);
  const Divisor parts(std::max<int64_t>((columns + part - 1) / part, 1));
  parallel_small_teams(stream, rows * parts.value(),
                       parallel::RowParts<Kernel>{kernel, columns, part, parts}, part);
}

}  // namespace wisp
