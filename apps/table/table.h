// The command `wisp table`: a paper's table, from its runs to its page. Called from one thread.
#pragma once

#include <string>
#include <vector>

#include "apps/table/table_file.h"
#include "apps/table/table_plan.h"

namespace wisp {

struct TableRequest {
  std::string program;                 // program to call as `program train CONFIG …`
  std::string scale;                   // "": the table's first
  std::string out = "tables";          // the runs are in OUT/TABLE-SCALE
  int64_t seeds = 0;                   // of each listed table, as in TableFile::take_seeds()
  std::vector<std::string> overrides;  // key=value, of all rows
  int jobs = 1;                        // runs at a time
  int niceness = 19;                   // of the runs: 19 takes the time that others leave
};

/// Trains the runs of a table that OUT does not hold yet, one per row and seed: seed by seed, the
/// dense row first. A stopped run of another program starts anew. Writes table.md, table.html,
/// table.svg and results.csv there at the start and after each finished run, and prints the table
/// at the end. Returns the exit status: 0, 1 if runs failed, 128 + the signal. Throws Error before
/// anything runs for a configuration that makes no sense, and as RunQueue.
int run_table(const TableFile& table, const TableRequest& request, const LoadConfig& load);

/// Prints the table from the runs that OUT holds, and trains nothing.
void show_table(const TableFile& table, const TableRequest& request);

/// Prints steps, workers and batch of each row, and how long it takes here by a short measurement
/// of a step on the row's own data; says why where that fails. Trains nothing.
/// Returns the exit status: 0, or 128 + the signal that stopped it.
int plan_table(const TableFile& table, const TableRequest& request, const LoadConfig& load);

/// Prints paper, model, data and finished runs of each known table, at the request's scale or at
/// all. `measure` adds what all runs would take here, by a short measurement of a step of the dense
/// row, and says why where that fails. Returns the exit status as plan_table() does.
int list_tables(const TableRequest& request, bool measure, const LoadConfig& load);

}  // namespace wisp
