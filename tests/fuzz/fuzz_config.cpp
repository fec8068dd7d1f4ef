// Fuzz target for configurations: the text of a file, then overrides, each after a zero byte.
#include "core/io/config.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

std::vector<std::string> split(std::string_view input) {
  std::vector<std::string> parts(1);
  for (const char c : input) {
    if (c == '\0') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// Binds a key of each type, as a program does, and returns the resolved text.
std::string bind_all(Config& config) {
  bool nesterov = false;
  int epochs = 3;
  int64_t seed = 1;
  double lr = 0.1;
  std::string name = "mlp";
  std::vector<int64_t> hidden = {64, 32};
  std::vector<double> ratios = {0.25, 1e-3};
  std::vector<std::string> tags;
  config.bind("seed", seed, "");
  config.bind("model.name", name, "");
  config.bind("model.hidden", hidden, "");
  config.bind("optimizer.lr", lr, "");
  config.bind("optimizer.nesterov", nesterov, "");
  config.bind("train.epochs", epochs, "");
  config.bind("train.tags", tags, "");
  config.bind("compression.ratios", ratios, "");
  for (Config& row : config.rows("compression.policy", "")) {
    row.bind("pattern", name, "");
    row.finish();
  }
  return config.resolved();
}

std::string resolve(const std::string& text, const std::string& name,
                    std::span<const std::string> overrides, bool whole) {
  Config config = Config::from_text(text, name, overrides);
  const std::string resolved = bind_all(config);
  if (whole) config.finish();
  return resolved;
}

}  // namespace

void fuzz(std::string_view input) {
  static const TempDir dir;
  static const std::string base = dir.write("base.toml", "seed = 2\n[model]\nname = 'base'\n");
  const std::vector<std::string> parts = split(input);
  std::string resolved;
  try {
    resolved = resolve(parts[0], dir / "run.toml", std::span(parts).subspan(1), false);
    resolve(parts[0], dir / "run.toml", std::span(parts).subspan(1), true);
  } catch (const Error&) {
  }
  if (resolved.empty()) return;
  const std::string again = resolve(resolved, "resolved.toml", {}, true);
  if (again != resolved) throw Finding("config: resolved:\n" + resolved + "reads as:\n" + again);
}

std::vector<std::string> fuzz_seeds() {
  Config config;
  const std::string defaults = bind_all(config);
  using namespace std::string_literals;
  return {defaults,
          "extends = 'base.toml'\n[train]\nepochs = 0x10\ntags = ['a', \"\\u00e9\\n\", '''x\n''']\n"
          "[[compression.policy]]\npattern = 'conv.*'\n[[compression.policy]]\npattern = \"\"\n",
          "seed = 7\0optimizer.lr=1e-3\0model={name=bare, hidden=[1]}\0train.tags=[a, b]"s,
          "optimizer = {lr = -inf, nesterov = true}\nmodel.hidden = []\n# words\n"
          "compression.ratios = [1, 0.5, 6.02e23]\ndate = 1979-05-27T07:32:00-08:00\n"};
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 18) + 400 * input_bytes; }

}  // namespace wisp
