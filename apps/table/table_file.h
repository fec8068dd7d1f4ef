// A table of a paper as a file: rows of configurations, what the paper reports of them, and up to
// two scales to run them at. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wisp {

/// How the rows are run.
struct TableScale {
  std::string name;                    // "small" or "paper"
  std::string config;                  // path of the config file
  std::vector<std::string> overrides;  // key=value, of all rows
  std::string changes;                 // how it differs from the paper, in words
  int64_t samples = 0;                 // samples of the training set, of texts: tokens; 0: unknown
  std::optional<double> target;        // the score whose time is modelled, as shown
};

struct TableRow {
  std::string name;  // safe as a file name
  std::vector<std::string> overrides;
  std::vector<std::string> small, paper;  // more overrides at one scale
  std::optional<double> published;        // the paper's score, as shown (percent, perplexity)
  std::optional<double> spread;           // published beside it, ±
  std::string remark;
};

struct TableFile {
  std::string name;  // of the file, without folder and extension
  std::string title;
  std::string source;          // paper and number of the table
  std::string dense;           // name of the row with which the others are compared
  std::vector<int64_t> seeds;  // of each row
  std::vector<TableScale> scales;
  std::vector<TableRow> rows;

  /// The first scale if `name` is empty. Throws Error, with the scales there are, if there is none
  /// of this name.
  const TableScale& scale(const std::string& name) const;
  size_t dense_index() const;
  const TableRow& dense_row() const { return rows[dense_index()]; }
  /// The name of a run, which names its directory: "topk-s2".
  std::string run_name(size_t row, int64_t seed) const;

  /// Replaces the seeds by 1 to `count`; 0 leaves them.
  void take_seeds(int64_t count);

  /// Throws Error with file:line for an unknown key, a wrong type, a name that is no file name, a
  /// name or seed that is given twice, and a missing config file, row, seed or scale.
  static TableFile read(const std::string& path);
};

/// The overrides of a row at a scale: the scale's, the row's, the row's at this scale, then `more`.
std::vector<std::string> overrides_of(const TableRow& row, const TableScale& scale,
                                      std::span<const std::string> more = {});

/// The files of the tables that come with the program, sorted by name: apps/tables above the
/// working directory or the program's, or share/wisp/tables beside an installed one.
std::vector<std::string> known_tables();

/// The path of a table: `name` itself if it is a path (with '/' or ".toml"), else that of the known
/// table. Throws Error with the nearest name if there is none.
std::string find_table(const std::string& name);

}  // namespace wisp
