// The runs of a sweep: the product of several lists of values. Any thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/config.h"

namespace wisp {

struct SweepAxis {
  std::string key;
  std::vector<std::string> values;  // as typed
};

/// Parses "compression.ratio=0.1,0.01". A comma inside brackets, braces or quotes belongs to its
/// value. Throws Error for a text without '=', an empty value, or an open bracket or quote.
SweepAxis parse_axis(const std::string& text);

struct SweepRun {
  std::string name;  // from axes with several values; safe and short enough as a file name
  std::vector<std::string> overrides;
  std::vector<std::optional<std::string>> values;  // by axis; none: the key does not apply
  std::string config;                              // resolved
};

/// Reads the config with overrides.
using LoadSwept = std::function<Config(std::vector<std::string>)>;

/// All combinations, the last axis fastest, each with a bound and checked configuration. A key that
/// some combinations know and others do not is left out where it is unknown (compression.ratio with
/// compression.method=none). Combinations that become equal are one run. Throws Error for a key
/// that no combination knows, a repeated axis, and any configuration that makes no sense.
std::vector<SweepRun> sweep_runs(std::span<const SweepAxis> axes, const LoadSwept& load);

}  // namespace wisp
