#include "apps/reference/method_matrix.h"

#include <gtest/gtest.h>

#include "apps/setup/methods.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

/// Every combination, with accumulation in one precision only, as it does not depend on that.
std::vector<MatrixCell> cells_of(const std::string& method) {
  std::vector<MatrixCell> cells;
  const std::vector<std::pair<int64_t, std::string>> steps = {
      {1, "f32"}, {2, "f32"}, {1, "bf16"}, {1, "f64"}};
  for (const char* optimizer : {"sgd", "nesterov", "adamw"})
    for (const auto& [accumulate, precision] : steps)
      for (const char* scope : {"layer", "bucket", "model"})
        for (const int workers : {1, 3})
          cells.push_back({method, optimizer, accumulate, precision, scope, workers});
  return cells;
}

TEST(MethodMatrix, EachCellSaysWhatTheRunDoes) {
  for (const std::string& method : method_names()) {
    for (const MatrixCell& cell : cells_of(method)) {
      const std::string refusal = error_of(
          [&] { with_replicas(cell.config(), [](ReplicaTest& test) { test.steps(0, 1); }); });
      const std::string expected = judge(cell).refusal;
      EXPECT_EQ(refusal, expected.empty() ? "no error" : expected)
          << method << " " << cell.optimizer << " " << cell.accumulate << " " << cell.precision
          << " " << cell.scope << " " << cell.workers;
    }
  }
}

TEST(MethodMatrix, KnowsWhatThePapersExclude) {
  EXPECT_EQ(judge({.method = "dgc"}).refusal, "");
  EXPECT_NE(judge({.method = "dgc", .optimizer = "adamw"}).refusal.find("finished updates"),
            std::string::npos);
  EXPECT_NE(judge({.method = "signum", .optimizer = "nesterov"}).refusal.find("no Nesterov step"),
            std::string::npos);
  EXPECT_EQ(judge({.method = "topk", .optimizer = "adamw"}).refusal, "");
  EXPECT_NE(judge({.method = "topk", .precision = "f64"}).refusal, "");
  EXPECT_EQ(judge({.method = "none", .precision = "f64"}).refusal, "");
  EXPECT_FALSE(judge({.method = "topk", .workers = 1}).remarks.empty());
  EXPECT_EQ(judge({.method = "choco", .optimizer = "adamw", .scope = "model"}).refusal, "");
  EXPECT_NE(judge({.method = "choco", .precision = "f64"}).refusal.find("f32 weights"),
            std::string::npos);
  EXPECT_NE(judge({.method = "local_sgd", .scope = "model"}).refusal.find("compression.scope"),
            std::string::npos);
}

TEST(MethodMatrix, IsPrintedWithTheReasons) {
  const std::string text = method_matrix();
  for (const std::string& method : method_names())
    EXPECT_NE(text.find("\n" + method + " "), std::string::npos) << method;
  EXPECT_NE(text.find("dgc, adamw: no: "), std::string::npos) << text;
  EXPECT_NE(text.find("topk, N=1: a single worker exchanges nothing"), std::string::npos) << text;
}

}  // namespace
}  // namespace wisp
