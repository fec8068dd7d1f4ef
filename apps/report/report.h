// A comparison of runs: a table for a terminal, and headings that a page has too. Any thread.
#pragma once

#include <span>
#include <string>

#include "apps/run/run_record.h"

namespace wisp {

/// A heading over figures of several runs: the name of what they show if it is the same in all
/// runs, else a general word, and each figure has its run's name.
struct Heading {
  std::string text;
  std::string (*name_of)(const RunRecord&);
  bool general = false;

  std::string figure(const std::string& value, const RunRecord& run) const {
    return general && value != "-" ? value + " " + name_of(run) : value;
  }
};
/// The figure of a split's first metric; "diverged" beside or in place of it if the run diverged.
std::string score_text(const RunRecord& run, const std::string& split, const Heading& metric);
Heading metric_heading(std::span<const RunRecord> runs);
Heading speed_heading(std::span<const RunRecord> runs);

/// One row per run, from its summary: accuracy, speed, bytes and milliseconds per step and worker;
/// then one line per run on its bottleneck, or on why it diverged. An unfinished run has dashes.
std::string report_table(std::span<const RunRecord> runs);

}  // namespace wisp
