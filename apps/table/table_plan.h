// The cost of a table: steps, workers and batch of its rows. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/table/table_file.h"
#include "core/io/config.h"

namespace wisp {

/// Reads a config file with overrides.
using LoadConfig =
    std::function<Config(const std::string& path, std::vector<std::string> overrides)>;

struct RowPlan {
  int workers = 0;
  int64_t batch = 0;   // samples of a step, over all workers; of texts columns
  int64_t epochs = 0;  // at most
  int64_t steps = 0;   // of a run; 0: unknown, because neither samples nor data are given
};

/// One entry per row of the table, at a scale and with more overrides for all rows. Steps are those
/// of the scale's samples, or else of the data. Throws Error with the row's name for a
/// configuration that makes no sense, or data that cannot be read.
std::vector<RowPlan> plan_rows(const TableFile& table, const TableScale& scale,
                               std::span<const std::string> overrides, const LoadConfig& load);

}  // namespace wisp
