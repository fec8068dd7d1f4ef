#include "apps/reference/method_matrix.h"

#include <fmt/format.h>

#include <utility>

#include "apps/setup/methods.h"
#include "apps/setup/prepared.h"
#include "core/base/error.h"
#include "core/io/toml_text.h"

namespace wisp {
namespace {

constexpr const char* kRun = R"(
threads = 1
model = { name = "mlp", hidden = [32] }
data = { name = "synthetic", side = 8, train_count = 48, test_count = 8, threads = 0 }
train = { batch = 48, backend = "reference" }
)";

/// The cell with each choice in turn, by the heading of the choice's column.
std::vector<std::pair<std::string, MatrixCell>> row_of(const MatrixCell& base) {
  std::vector<std::pair<std::string, MatrixCell>> row;
  const auto add = [&](const std::string& heading, auto MatrixCell::*choice, const auto& value) {
    row.emplace_back(heading, base).second.*choice = value;
  };
  for (const char* optimizer : {"sgd", "nesterov", "adamw"})
    add(optimizer, &MatrixCell::optimizer, optimizer);
  add("accumulate", &MatrixCell::accumulate, 2);
  for (const char* precision : {"bf16", "f64"}) add(precision, &MatrixCell::precision, precision);
  for (const char* scope : {"layer", "bucket", "model"}) add(scope, &MatrixCell::scope, scope);
  for (const int workers : {1, 2, 4, 8, 16})
    add(fmt::format("N={}", workers), &MatrixCell::workers, workers);
  return row;
}

std::string word_for(const Verdict& verdict) {
  if (!verdict.refusal.empty()) return "no";
  return verdict.remarks.empty() ? "yes" : "(yes)";
}

}  // namespace

Config MatrixCell::config() const {
  Config config = Config::from_text(kRun, "matrix");
  config.set("compression.method", to_toml(method));
  config.set("compression.scope", to_toml(scope));
  config.set("optimizer.kind", to_toml(std::string(optimizer == "adamw" ? "adamw" : "sgd")));
  config.set("optimizer.nesterov", optimizer == "nesterov" ? "true" : "false");
  config.set("train.accumulate", std::to_string(accumulate));
  config.set("train.precision", to_toml(precision));
  config.set("workers", std::to_string(workers));
  return config;
}

Verdict judge(const MatrixCell& cell) {
  try {
    return {"", Prepared(cell.config()).exchange().remarks};
  } catch (const Error& error) {
    return {error.what(), {}};
  }
}

std::string method_matrix() {
  std::string table = fmt::format("{:<14}", "method");
  std::string reasons;
  for (const auto& [heading, cell] : row_of({})) table += fmt::format(" {:>10}", heading);
  table += "\n";
  for (const std::string& name : method_names()) {
    table += fmt::format("{:<14}", name);
    MatrixCell base{.method = name};
    if (!judge(base).refusal.empty()) base.optimizer = "adamw";
    for (const auto& [heading, cell] : row_of(base)) {
      const Verdict verdict = judge(cell);
      table += fmt::format(" {:>10}", word_for(verdict));
      if (!verdict.refusal.empty())
        reasons += fmt::format("{}, {}: no: {}\n", name, heading, verdict.refusal);
      for (const std::string& remark : verdict.remarks)
        reasons += fmt::format("{}, {}: {}\n", name, heading, remark);
    }
    table += "\n";
  }
  return table + "\n" + reasons;
}

}  // namespace wisp
