// Tests of the bytes that compression saves, for a gradient of real size.
#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/support/test_replica.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// Shapes of ResNet-50's parameters (He et al. 2016). The stride is in the 3x3 convolution, as in
/// common implementations.
std::vector<Shape> resnet50() {
  std::vector<Shape> shapes;
  const auto conv_and_norm = [&](int64_t in, int64_t out, int64_t kernel) {
    shapes.push_back({out, kernel, kernel, in});
    shapes.push_back({out});
    shapes.push_back({out});
  };
  conv_and_norm(3, 64, 7);
  int64_t in = 64;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      conv_and_norm(in, width, 1);
      conv_and_norm(width, width, 3);
      conv_and_norm(width, 4 * width, 1);
      if (block == 0) conv_and_norm(in, 4 * width, 1);
      in = 4 * width;
    }
  }
  shapes.push_back({1000, 2048});
  shapes.push_back({1000});
  return shapes;
}

TEST(Reduction, OfDgcOnResNet50IsThePapers) {
  ReplicaOptions options;
  options.shapes = resnet50();
  options.averaging.buckets = {};
  options.averaging.guard = false;  // one worker sends nothing, so the guard would go dense
  options.averaging.ratio = [](double) { return 0.001; };
  options.methods = [] {
    std::vector<Method> methods;
    methods.push_back({"dgc", make_method("dgc", "", {.momentum = 0.9}), Scope::layer});
    return methods;
  };
  options.method_of = [](const Segment& segment) { return segment.shape.rank() > 1 ? 0 : kDense; };
  const auto noise = [](int, int64_t, int segment, int64_t i) {
    const Philox random(3, 0, static_cast<uint64_t>(segment));
    return random.uniform(static_cast<uint64_t>(i)) - 0.5f;
  };
  run_workers(1, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    replica.step(0, noise);
    const StepCost& cost = replica.sync().cost();
    EXPECT_EQ(cost.bytes_raw, 4 * 25'557'032);
    // Lin et al. 2018, table 3, has 277 times. 6 bytes for each 1000th weight and 4 for each of the
    // 54,120 elements in vectors give 276.7. The tolerance of 0.2 % covers rounding up in 54
    // tensors and a size for each payload.
    EXPECT_NEAR(static_cast<double>(cost.bytes_raw) / static_cast<double>(cost.bytes_encoded),
                276.7, 0.002 * 276.7);
  });
}

}  // namespace
}  // namespace wisp
