#include "apps/reference/method_matrix.h"

#include <fmt/format.h>

#include <functional>

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

struct Column {
  std::string name;
  std::function<void(MatrixCell&)> choose;
};

std::vector<Column> columns() {
  std::vector<Column> columns;
  for (const char* optimizer : {"sgd", "nesterov", "adamw"})
    columns.push_back({optimizer, [=](MatrixCell& cell) { cell.optimizer = optimizer; }});
  columns.push_back({"accumulate", [](MatrixCell& cell) { cell.accumulate = 2; }});
  for (const char* precision : {"bf16", "f64"})
    columns.push_back({precision, [=](MatrixCell& cell) { cell.precision = precision; }});
  for (const char* scope : {"layer", "bucket", "model"})
    columns.push_back({scope, [=](MatrixCell& cell) { cell.scope = scope; }});
  for (const int workers : {1, 2, 4, 8, 16})
    columns.push_back(
        {fmt::format("N={}", workers), [=](MatrixCell& cell) { cell.workers = workers; }});
  return columns;
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
  const std::vector<Column> all = columns();
  std::string table = fmt::format("{:<14}", "method");
  std::string reasons;
  for (const Column& column : all) table += fmt::format(" {:>10}", column.name);
  table += "\n";
  for (const std::string& name : method_names()) {
    table += fmt::format("{:<14}", name);
    MatrixCell base{.method = name};
    if (!judge(base).refusal.empty()) base.optimizer = "adamw";
    for (const Column& column : all) {
      MatrixCell cell = base;
      column.choose(cell);
      const Verdict verdict = judge(cell);
      table += fmt::format(" {:>10}", word_for(verdict));
      if (!verdict.refusal.empty())
        reasons += fmt::format("{}, {}: no: {}\n", name, column.name, verdict.refusal);
      for (const std::string& remark : verdict.remarks)
        reasons += fmt::format("{}, {}: {}\n", name, column.name, remark);
    }
    table += "\n";
  }
  return table + "\n" + reasons;
}

}  // namespace wisp
