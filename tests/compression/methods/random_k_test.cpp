#include <gtest/gtest.h>

#include <set>

#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// Four of 0, 1, …, 9. The strata have 3, 3, 2 and 2 elements and begin at a drawn element.
TEST(RandomK, SendsOneOfEachStratum) {
  const std::vector<std::vector<float>> golden = {{7, 0, 3, 5}, {2, 4, 6, 9}, {8, 2, 3, 5},
                                                  {1, 2, 6, 7}, {6, 7, 1, 3}, {0, 2, 5, 8}};
  UnitRig rig(layer_fields({10}), make_method("random_k", ""));
  std::vector<std::vector<float>> sent;
  for (int64_t step = 0; step < 6; ++step) {
    std::fill_n(rig.residual(), 10, 0.0f);
    for (int64_t i = 0; i < 10; ++i) rig.gradient()[i] = static_cast<float>(i);
    StepInfo info;
    info.step = step;
    info.ratio = 0.4;
    info.seed = 1;
    const PayloadBytes payload = rig.encode(info);
    sent.emplace_back(4);
    std::memcpy(sent.back().data(), payload.data(), payload.size());
  }
  EXPECT_EQ(sent, golden);
}

/// Ranks find the position of each value again, whatever d and k are.
TEST(RandomK, DrawsAsManyAsItShould) {
  for (const int64_t numel : {1, 2, 3, 7, 64, 1000}) {
    for (const double ratio : {1e-6, 0.1, 0.5, 0.7, 1.0}) {
      UnitRig rig(layer_fields({numel}), make_method("random_k", ""));
      for (int64_t i = 0; i < numel; ++i) rig.gradient()[i] = static_cast<float>(i + 1);
      StepInfo info;
      info.ratio = ratio;
      const PayloadBytes payload = rig.encode(info);
      std::set<float> values;
      for (size_t j = 0; j < payload.size() / 4; ++j) {
        float value = 0.0f;
        std::memcpy(&value, payload.data() + 4 * j, 4);
        values.insert(value);
      }
      EXPECT_EQ(values.size(), payload.size() / 4);
      rig.decode(info, {payload});
      for (int64_t i = 0; i < numel; ++i) {
        const auto value = static_cast<float>(i + 1);
        ASSERT_EQ(rig.gradient()[i], values.count(value) ? value : 0.0f);
        ASSERT_EQ(rig.residual()[i], values.count(value) ? 0.0f : value);
      }
    }
  }
}

}  // namespace
}  // namespace wisp
