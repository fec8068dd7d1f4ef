#include "core/train/ema.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

struct Rig {
  explicit Rig(double decay) : ema(worker.context, parameters, {decay}) {}
  double& weight() { return *parameters.weight().data<double>(); }
  std::vector<SavedState> state() const { return ema.state(Sharing::shared); }
  double average() const { return *state()[0].tensor.data<double>(); }

  TestContext worker;
  Parameter trained{"trained", {3}, {Init::Kind::constant, 1.0}, true, {}};
  Parameter frozen{"frozen", {3}, {Init::Kind::constant, 7.0}, true, {}, /*frozen=*/true};
  Buffer statistic{"statistic", {2}, 5.0, {}};
  FlatParameters parameters{worker.context, {&trained, &frozen}, {&statistic}};
  Ema ema;
};

TEST(Ema, RisesToItsDecay) {
  Rig rig(0.25);
  rig.weight() = 12.0;
  rig.ema.update(rig.worker.context, 1);  // d = 2 / 11
  EXPECT_DOUBLE_EQ(rig.average(), 1.0 + 9.0 / 11.0 * 11.0);
  rig.weight() = 22.0;
  rig.ema.update(rig.worker.context, 2);  // d = min(1 / 4, 3 / 12)
  EXPECT_DOUBLE_EQ(rig.average(), 10.0 + 0.75 * 12.0);
  rig.weight() = 23.0;
  rig.ema.update(rig.worker.context, 1000);
  EXPECT_DOUBLE_EQ(rig.average(), 19.0 + 0.75 * 4.0);
}

TEST(Ema, AveragesBuffersToo) {
  Rig rig(0.25);
  rig.statistic.value.data<double>()[1] = 9.0;
  rig.ema.update(rig.worker.context, 1000);
  const SavedState average = rig.state().back();
  EXPECT_EQ(average.name, "ema_buffer/statistic");
  EXPECT_EQ(average.sharing, Sharing::per_rank);
  EXPECT_EQ(values(average.tensor), (std::vector<double>{5.0, 8.0}));
}

TEST(Ema, HoldsNoFrozenWeights) {
  Rig rig(0.5);
  ASSERT_EQ(rig.state().size(), 2u);  // trained weights and the buffer
  EXPECT_EQ(rig.state()[0].name, "ema/trained");
  EXPECT_EQ(rig.state()[0].sharing, Sharing::shared);
}

TEST(Ema, SwapsThereAndBackBitForBit) {
  Rig rig(0.9);
  rig.weight() = 0.1;
  rig.statistic.value.data<double>()[0] = 0.3;
  const auto all = [&] {
    return std::make_pair(values(rig.parameters.weight()), values(rig.statistic.value));
  };
  const auto before = all();
  rig.ema.exchange(rig.worker.context);
  EXPECT_EQ(rig.weight(), 1.0);
  EXPECT_EQ(*rig.statistic.value.data<double>(), 5.0);
  EXPECT_EQ(values(FlatParameters::view(rig.parameters.weight(), rig.parameters.all_segments()[1])),
            (std::vector<double>{7.0, 7.0, 7.0}));
  rig.ema.exchange(rig.worker.context);
  EXPECT_EQ(all(), before);
}

TEST(EmaOptions, LieBelowOne) {
  Config config = Config::from_text("ema.decay = 1.0\n", "my.toml");
  EXPECT_EQ(error_of([&] { EmaOptions::bind(config); }),
            "my.toml:1: ema.decay is 1, expected 0 <= decay < 1");
}

}  // namespace
}  // namespace wisp
