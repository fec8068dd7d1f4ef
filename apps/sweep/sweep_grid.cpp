#include "apps/sweep/sweep_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "apps/setup/prepared.h"
#include "core/base/error.h"
#include "core/io/checksum.h"

namespace wisp {
namespace {

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
  std::string name = text;
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '+';
    if (!plain && c != '-') c = '_';
  }
  if (name == text) return name;
  return fmt::format("{}-{}", name, checksum_text(crc32c(text.data(), text.size())));
}

/// "compression.ratio" -> "ratio", unless another axis has the same last part.
std::string short_key(const SweepAxis& axis, std::span<const SweepAxis> axes) {
  const auto leaf = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  const auto alike = std::count_if(axes.begin(), axes.end(), [&](const SweepAxis& other) {
    return leaf(other.key) == leaf(axis.key);
  });
  return alike == 1 ? leaf(axis.key) : axis.key;
}

std::string name_of(const SweepRun& run, std::span<const SweepAxis> axes) {
  std::string name;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].values.size() == 1 || !run.values[a]) continue;
    if (!name.empty()) name += '_';
    name += fmt::format("{}-{}", short_key(axes[a], axes), safe(*run.values[a]));
  }
  return name.empty() ? "run" : name;
}

/// A binder of combinations, which leaves out keys that a combination's configuration does not
/// know.
class Binder {
 public:
  Binder(std::span<const SweepAxis> axes,
         const std::function<Config(std::vector<std::string>)>& load)
      : axes_(axes), load_(load), known_(axes.size(), false), unknown_(axes.size()) {}

  SweepRun bind(std::vector<std::optional<std::string>> values) {
    for (;;) {
      SweepRun run;
      run.values = values;
      for (size_t a = 0; a < axes_.size(); ++a) {
        if (values[a]) run.overrides.push_back(axes_[a].key + "=" + *values[a]);
      }
      try {
        const Prepared prepared(load_(run.overrides));
        if (leave_out_idle(prepared.config(), values)) continue;
        run.config = prepared.config().resolved();
      } catch (const UnknownKey& error) {
        const size_t axis = axis_of(error.key());
        if (axis == axes_.size()) throw;
        values[axis].reset();
        unknown_[axis] = error;
        continue;
      }
      for (size_t a = 0; a < axes_.size(); ++a) known_[a] = known_[a] || values[a];
      run.name = name_of(run, axes_);
      return run;
    }
  }

  /// Throws the error for the first axis that no combination knows.
  void finish() const {
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (known_[a]) continue;
      if (unknown_[a]) throw UnknownKey(*unknown_[a]);
      WISP_CHECK(false, "sweep: ", axes_[a].key, " has no effect in any of these runs");
    }
  }

 private:
  /// Leaves out the keys that a configuration has forgotten, as they belong to a component that it
  /// does not choose. Returns whether there are such keys.
  bool leave_out_idle(const Config& config, std::vector<std::optional<std::string>>& values) const {
    bool idle = false;
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (!values[a] || config.given(axes_[a].key)) continue;
      values[a].reset();
      idle = true;
    }
    return idle;
  }

  size_t axis_of(const std::string& key) const {
    return static_cast<size_t>(std::ranges::find(axes_, key, &SweepAxis::key) - axes_.begin());
  }

  std::span<const SweepAxis> axes_;
  const std::function<Config(std::vector<std::string>)>& load_;
  std::vector<bool> known_;
  std::vector<std::optional<UnknownKey>> unknown_;
};

}  // namespace

SweepAxis parse_axis(const std::string& text) {
  const size_t equals = text.find('=');
  WISP_CHECK(equals != text.npos && equals > 0, "sweep: '", text,
             "' is no list of values, expected a.b=value,value");
  const std::string key = text.substr(0, equals);
  return {key, split_values(key, text.substr(equals + 1))};
}

std::vector<SweepRun> sweep_runs(std::span<const SweepAxis> axes,
                                 const std::function<Config(std::vector<std::string>)>& load) {
  std::set<std::string> keys;
  size_t combinations = 1;
  for (const SweepAxis& axis : axes) {
    WISP_CHECK(keys.insert(axis.key).second, "sweep: ", axis.key, " is given twice");
    combinations *= axis.values.size();
  }
  Binder binder(axes, load);
  std::vector<SweepRun> runs;
  std::set<std::string> configs;
  for (size_t c = 0; c < combinations; ++c) {
    std::vector<std::optional<std::string>> values(axes.size());
    size_t rest = c;
    for (size_t a = axes.size(); a-- > 0; rest /= axes[a].values.size())
      values[a] = axes[a].values[rest % axes[a].values.size()];
    SweepRun run = binder.bind(std::move(values));
    if (configs.insert(run.config).second) runs.push_back(std::move(run));
  }
  binder.finish();
  return runs;
}

}  // namespace wisp
