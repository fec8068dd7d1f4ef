// The runs of a sweep: the product of lists of values.
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

/// "compression.ratio=0.1,0.01": a comma inside brackets, braces or quotes belongs to its value.
/// Throws Error for a text without '=', an empty value, or a bracket or quote left open.
SweepAxis parse_axis(const std::string& text);

struct SweepRun {
  std::string name;  // of the axes that have several values; safe as a file's name
  std::vector<std::string> overrides;
  std::vector<std::optional<std::string>> values;  // by axis; none: its key does not apply
  std::string config;                              // resolved
};

/// All combinations, the last axis fastest, each configuration bound and checked. A key that one
/// combination does not know but another does (compression.ratio, which compression.method=none has
/// not) does not apply there and is left out; combinations that become equal by that are one run.
/// `load` reads the config with overrides. Throws Error for a key that no combination knows, or an
/// axis given twice, and for any configuration that makes no sense.
std::vector<SweepRun> sweep_runs(std::span<const SweepAxis> axes,
                                 const std::function<Config(std::vector<std::string>)>& load);

}  // namespace wisp
