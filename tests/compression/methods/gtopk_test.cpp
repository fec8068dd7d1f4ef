#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/random.h"
#include "tests/support/method_rig.h"
#include "tests/support/step_info.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

MethodRig gtopk_rig(int workers, std::vector<Field> fields, const std::string& toml = "") {
  return MethodRig(workers, std::move(fields), [=] { return make_method("gtopk", toml); });
}

/// Drawn integers, whose sums are exact in any order.
float gtopk_gradient(int64_t step, int rank, int64_t i) {
  const Philox noise(4, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
  return static_cast<float>(noise.below(static_cast<uint64_t>(i), 200'001)) - 100'000.0f;
}

using Entries = std::map<size_t, float>;

/// The k entries of largest magnitude. The others go to `rest`. No two magnitudes are equal.
Entries largest_entries(const Entries& all, size_t k, Entries* rest = nullptr) {
  std::vector<std::pair<float, size_t>> order;
  for (const auto& [i, value] : all) order.push_back({-std::fabs(value), i});
  std::sort(order.begin(), order.end());
  Entries kept;
  for (size_t j = 0; j < order.size(); ++j) {
    if (j >= k && !rest) break;
    (j < k ? kept : *rest)[order[j].second] = all.at(order[j].second);
  }
  return kept;
}

/// Shi et al. 2019 for one field, with one `residual` per worker. Returns the result.
Entries scalar_step(std::vector<std::vector<float>>& residual, int64_t step, size_t k) {
  const size_t workers = residual.size();
  std::vector<Entries> local(workers), rejected(workers);
  for (size_t rank = 0; rank < workers; ++rank) {
    Entries all;
    for (size_t i = 0; i < residual[rank].size(); ++i)
      all[i] = residual[rank][i] +=
          gtopk_gradient(step, static_cast<int>(rank), static_cast<int64_t>(i));
    local[rank] = largest_entries(all, k);
  }
  std::vector<Entries> held = local;
  for (size_t reach = 1; reach < workers; reach *= 2) {
    for (size_t rank = 0; rank + reach < workers; rank += 2 * reach) {
      for (const auto& [i, value] : held[rank + reach]) held[rank][i] += value;
      Entries rest;
      held[rank] = largest_entries(held[rank], k, &rest);
      for (const auto& [i, value] : rest) rejected[rank][i] += value;
    }
  }
  for (size_t rank = 0; rank < workers; ++rank) {
    for (const auto& [i, value] : held[0]) {
      if (local[rank].count(i) > 0) residual[rank][i] = 0.0f;
      if (rejected[rank].count(i) > 0) residual[rank][i] += rejected[rank][i];
    }
  }
  return held[0];
}

class GtopkOf : public testing::TestWithParam<int> {};

TEST_P(GtopkOf, FollowsAScalarModelOfThePaper) {
  constexpr int64_t kNumel = 700;
  const int workers = GetParam();
  MethodRig rig = gtopk_rig(workers, layer_fields({kNumel}));
  std::vector<std::vector<float>> residual(static_cast<size_t>(workers),
                                           std::vector<float>(kNumel, 0.0f));
  for (int64_t step = 0; step < 50; ++step) {
    for (int rank = 0; rank < workers; ++rank)
      for (int64_t i = 0; i < kNumel; ++i) rig.gradient(rank)[i] = gtopk_gradient(step, rank, i);
    rig.step(sparse_info(step, 0.02));
    const Entries result = scalar_step(residual, step, 14);
    std::vector<float> expected(kNumel, 0.0f);
    for (const auto& [i, value] : result) expected[i] = value;
    for (int rank = 0; rank < workers; ++rank) {
      ASSERT_EQ(std::vector<float>(rig.gradient(rank), rig.gradient(rank) + kNumel), expected)
          << "step " << step << ", rank " << rank;
      const float* kept = rig.state(rank, "residual").data<float>();
      ASSERT_EQ(std::vector<float>(kept, kept + kNumel), residual[static_cast<size_t>(rank)])
          << "step " << step << ", rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, GtopkOf, testing::Values(1, 2, 3, 5, 8),
                         [](const auto& parameter) { return std::to_string(parameter.param); });

TEST(Gtopk, SendsEightBytesAnEntryOnItsWayUpAndDown) {
  MethodRig rig = gtopk_rig(3, layer_fields({700, 50}));
  for (int rank = 0; rank < 3; ++rank)
    for (int64_t i = 0; i < 753; ++i) rig.gradient(rank)[i] = gtopk_gradient(0, rank, i);
  rig.step(sparse_info(0, 0.02));
  const size_t payload = 2 * 4 + 8 * (14 + 1);
  EXPECT_EQ(rig.sent(1, 0).size(), payload) << "rank 1 to rank 0";
  EXPECT_EQ(rig.sent(2, 0).size(), 0u) << "rank 2 has no partner";
  EXPECT_EQ(rig.sent(2, 1).size(), payload) << "rank 2 to rank 0";
  EXPECT_EQ(rig.sent(0, 2).size(), payload) << "rank 0 to rank 2";
  EXPECT_EQ(rig.sent(0, 3).size(), payload) << "rank 0 to rank 1";
  EXPECT_EQ(rig.compressor(0).message(rig.unit(0).spec, sparse_info(0, 0.02), 0).bytes,
            static_cast<int64_t>(payload));
}

/// One branch of the tree rejects a coordinate that another branch delivers. Its owners count it as
/// sent, so the rank that rejected it keeps the sum.
TEST(Gtopk, KeepsWhatOneBranchRejectsWhereItWasRejected) {
  MethodRig rig = gtopk_rig(4, layer_fields({4}));
  const float gradients[4][4] = {{9, 0, 0, 0}, {0, 2, 0, 0}, {0, 30, 0, 0}, {0, 0, 1, 0}};
  for (int rank = 0; rank < 4; ++rank)
    std::copy(gradients[rank], gradients[rank] + 4, rig.gradient(rank));
  rig.step(sparse_info(0, 0.25));
  const float residuals[4][4] = {{9, 2, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 1, 0}};
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(rig.gradient(rank)[1], 30.0f);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(rig.state(rank, "residual").data<float>()[i], residuals[rank][i]) << rank;
  }
}

}  // namespace
}  // namespace wisp
