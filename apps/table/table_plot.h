// The picture of a table: scores over bytes, as an SVG that stands alone. Any thread.
#pragma once

#include <span>
#include <string>

#include "apps/table/table_figures.h"

namespace wisp {

/// A point for each row that compares with dense: the bytes a worker sends in a step on a
/// logarithmic axis, and the mean of dense plus the row's change, with the change's 95 % interval
/// where it has one. A dashed line is dense. Rows without a change are not drawn. Empty if no row
/// has one.
std::string plot_of(const TableFile& table, const TableScale& scale,
                    std::span<const TableResult> results);

}  // namespace wisp
