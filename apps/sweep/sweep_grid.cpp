#include "apps/sweep/sweep_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "apps/setup/prepared.h"
#include "core/base/error.h"
#include "core/io/checksum.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

/// The most bytes of a run's name: 255 of a file, less ".log".
constexpr size_t kMostBytes = 251;

/// The parts of the text between top-level commas.
std::vector<std::string> split_values(const std::string& key, const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' && depth == 0 && !quote) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
    if (quote == '"' && c == '\\' && i + 1 < text.size()) {
      values.back() += text[++i];
    } else if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else {
      depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    }
  }
  WISP_CHECK(!quote && depth == 0, "sweep: ", key, "=", text, " leaves a bracket or quote open");
  for (const std::string& value : values)
    WISP_CHECK(!value.empty(), "sweep: ", key, "=", text, " has an empty value");
  return values;
}

/// The text as a file name: letters, digits and ".+-" stay; a checksum distinguishes texts that
/// became equal.
std::string safe(const std::string& text) {
  const auto is_unsafe = [](unsigned char c) {
    return !std::isalnum(c) && c != '.' && c != '+' && c != '-';
  };
  std::string name = text;
  std::ranges::replace_if(name, is_unsafe, '_');
  if (name == text) return name;
  return fmt::format("{}-{}", name, checksum_text(crc32c(text.data(), text.size())));
}

/// "compression.ratio" -> "ratio", unless another axis has the same last part.
std::string short_key(const SweepAxis& axis, std::span<const SweepAxis> axes) {
  const auto leaf = [](const SweepAxis& of) { return of.key.substr(of.key.rfind('.') + 1); };
  return std::ranges::count(axes, leaf(axis), leaf) == 1 ? leaf(axis) : axis.key;
}

/// The name, cut if it is too long, with a checksum of the whole.
std::string short_enough(const std::string& name) {
  if (name.size() <= kMostBytes) return name;
  const std::string end = "-" + checksum_text(crc32c(name.data(), name.size()));
  return std::string(beginning_of(name, kMostBytes - end.size())) + end;
}

std::string name_of(const SweepRun& run, std::span<const SweepAxis> axes) {
  std::string name;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].values.size() == 1 || !run.values[a]) continue;
    if (!name.empty()) name += '_';
    name += fmt::format("{}-{}", short_key(axes[a], axes), safe(*run.values[a]));
  }
  return name.empty() ? "run" : short_enough(name);
}

/// Binds the combination of run.values. Takes out the value of each key that its configuration
/// leaves unbound: one that it does not know, with the error noted in `unknown` by axis, and one of
/// a component that it does not choose.
void bind_combination(SweepRun& run, std::span<const SweepAxis> axes, const LoadSwept& load,
                      std::vector<std::optional<UnknownKey>>& unknown) {
  for (bool complete = false; !complete;) {
    complete = true;
    run.overrides.clear();
    for (size_t a = 0; a < axes.size(); ++a) {
      if (run.values[a]) run.overrides.push_back(axes[a].key + "=" + *run.values[a]);
    }
    const auto leave_out = [&](size_t axis) {
      run.values[axis].reset();
      complete = false;
    };
    try {
      const Prepared prepared(load(run.overrides));
      for (size_t a = 0; a < axes.size(); ++a) {
        if (run.values[a] && !prepared.config().given(axes[a].key)) leave_out(a);
      }
      run.config = prepared.config().resolved();
    } catch (const UnknownKey& error) {
      const auto found = std::ranges::find(axes, error.key(), &SweepAxis::key);
      const auto axis = static_cast<size_t>(found - axes.begin());
      if (axis == axes.size() || !run.values[axis]) throw;  // the config itself has it
      unknown[axis] = error;
      leave_out(axis);
    }
  }
}

}  // namespace

SweepAxis parse_axis(const std::string& text) {
  const size_t equals = text.find('=');
  WISP_CHECK(equals != text.npos && equals > 0, "sweep: '", text,
             "' is no list of values, expected a.b=value,value");
  const std::string key = text.substr(0, equals);
  return {key, split_values(key, text.substr(equals + 1))};
}

std::vector<SweepRun> sweep_runs(std::span<const SweepAxis> axes, const LoadSwept& load) {
  std::set<std::string> keys;
  size_t combinations = 1;
  for (const SweepAxis& axis : axes) {
    WISP_CHECK(keys.insert(axis.key).second, "sweep: ", axis.key, " is given twice");
    combinations *= axis.values.size();
  }
  std::vector<bool> known(axes.size());
  std::vector<std::optional<UnknownKey>> unknown(axes.size());
  std::vector<SweepRun> runs;
  std::set<std::string> configs;
  for (size_t c = 0; c < combinations; ++c) {
    SweepRun run{.values = std::vector<std::optional<std::string>>(axes.size())};
    size_t rest = c;
    for (size_t a = axes.size(); a-- > 0; rest /= axes[a].values.size())
      run.values[a] = axes[a].values[rest % axes[a].values.size()];
    bind_combination(run, axes, load, unknown);
    for (size_t a = 0; a < axes.size(); ++a) known[a] = known[a] || run.values[a];
    run.name = name_of(run, axes);
    if (configs.insert(run.config).second) runs.push_back(std::move(run));
  }
  for (size_t a = 0; a < axes.size(); ++a) {
    if (known[a]) continue;
    if (unknown[a]) throw UnknownKey(*unknown[a]);
    throw Error(concat("sweep: ", axes[a].key, " has no effect in any of these runs"));
  }
  return runs;
}

}  // namespace wisp
