#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

StepInfo random_block_info(int64_t step, double ratio) {
  StepInfo info;
  info.step = info.applied = step;
  info.ratio = ratio;
  info.seed = 1;
  return info;
}

std::vector<float> values_in(const PayloadBytes& payload) {
  std::vector<float> values(payload.size() / 4);
  std::memcpy(values.data(), payload.data(), payload.size());
  return values;
}

/// Blocks of 0, 1, …, 9, whose ends are not those of the field's slices.
TEST(RandomBlock, GoesRoundTheEnd) {
  const std::vector<std::vector<float>> golden = {{7, 8, 9, 0}, {0, 1, 2, 3}, {7, 8, 9, 0},
                                                  {9, 0, 1, 2}, {4, 5, 6, 7}, {9, 0, 1, 2}};
  UnitRig rig({joined_field({4, 6})}, make_method("random_block", ""));
  std::vector<std::vector<float>> sent;
  for (int64_t step = 0; step < 6; ++step) {
    std::fill_n(rig.residual(), 13, 0.0f);
    for (int64_t i = 0; i < 4; ++i) rig.gradient()[i] = static_cast<float>(i);
    for (int64_t i = 4; i < 10; ++i) rig.gradient()[i + 3] = static_cast<float>(i);
    sent.push_back(values_in(rig.encode(random_block_info(step, 0.4))));
  }
  EXPECT_EQ(sent, golden);
}

TEST(RandomBlock, HasAsManyNumbersAsPowerSgd) {
  std::vector<Field> fields = layer_fields({64 * 576, 6 * 4, 64});
  fields[0].rows = 64;
  fields[1].rows = 6;
  UnitRig rig(fields,
              make_method("random_block", "compression.block = \"rank\"\ncompression.rank = 3"));
  const Message message = rig.compressor->message(rig.unit.spec, random_block_info(0, 0.01), 0);
  // the small matrix and the vector, 1 x 64, travel whole
  EXPECT_EQ(message.bytes, 4 * (3 * (64 + 576) + 6 * 4 + 64));
  EXPECT_EQ(rig.compressor->traits().scopes, std::vector{Scope::layer});
  const auto noise = [](int64_t i) { return Philox(1, 2, 3).uniform(static_cast<uint64_t>(i)); };
  for (int64_t i = 0; i < rig.unit.gradient.numel(); ++i) rig.gradient()[i] = noise(i);
  rig.decode(random_block_info(0, 0.01), {rig.encode(random_block_info(0, 0.01))});
  for (int64_t i = 0; i < 64; ++i) {
    const int64_t at = fields[2].slices[0].offset + i;
    EXPECT_EQ(rig.gradient()[at], noise(at));
    EXPECT_EQ(rig.residual()[at], 0.0f);
  }
}

TEST(RandomBlock, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] { make_method("random_block", "compression.block = \"big\""); }),
            "test.toml:1: compression.block is 'big', expected ratio or rank");
  EXPECT_EQ(error_of([] { make_method("random_block", "compression.rank = 0"); }),
            "test.toml:1: compression.rank is 0, expected more than 0");
  EXPECT_EQ(error_of([] {
              make_method("random_block", "compression.block = \"rank\"\ncompression.ratio = 0.1");
            }),
            "test.toml:2: compression.ratio means nothing to compression.block = \"rank\"; set "
            "compression.rank");
}

}  // namespace
}  // namespace wisp
