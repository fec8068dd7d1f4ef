// The interface carries methods that exchange weights after the update.
#include "distributed/synchronizer.h"

#include <gtest/gtest.h>

#include "distributed/launch.h"
#include "tests/support/test_context.h"
#include "tests/support/toy_gossip.h"

namespace wisp {
namespace {

constexpr int64_t kNumel = 5;

/// What a worker's update adds to its weights.
float push(int rank, int64_t step) { return static_cast<float>((rank + 1) * (step + 2)); }

TEST(Synchronizer, CarriesAnExchangeAfterTheUpdate) {
  for (const int workers : {1, 2, 3, 4}) {
    std::vector<float> model(static_cast<size_t>(workers), 0.0f);  // the weight of each rank
    for (int64_t step = 0; step < 6; ++step) {
      for (int rank = 0; rank < workers; ++rank)
        model[static_cast<size_t>(rank)] += push(rank, step);
      const std::vector<float> sent = model;
      for (int rank = 0; rank < workers; ++rank) {
        const int peer = ToyGossip::neighbour(step, rank, workers);
        if (peer >= 0)
          model[static_cast<size_t>(rank)] =
              0.5f * (sent[static_cast<size_t>(rank)] + sent[static_cast<size_t>(peer)]);
      }
    }
    float mean = 0.0f;
    for (const float weight : model) mean += weight;
    mean /= static_cast<float>(workers);

    run_workers(workers, {.threads = 1}, [&](Worker& worker) {
      TestContext test({.compute = DType::f32});
      Parameter parameter{"p", {kNumel}, {}, true, {}};
      FlatParameters parameters(test.context, {&parameter}, {});
      ToyGossip gossip(worker.communicator, test.context, parameters);
      Synchronizer& sync = gossip;
      EXPECT_TRUE(sync.replicas_differ());
      for (int64_t step = 0; step < 6; ++step) {
        sync.begin({step, 0.0, 0.1});
        sync.forward_done({});
        if (step == 5 && worker.rank == 0) sync.request_stop();
        EXPECT_EQ(sync.before_update(), step == 5 ? Outcome::stop : Outcome::applied);
        for (int64_t i = 0; i < kNumel; ++i)
          parameters.weight().data<float>()[i] += push(worker.rank, step);
        sync.after_update();
      }
      const Tensor consensus = sync.consensus();
      for (int64_t i = 0; i < kNumel; ++i) {
        EXPECT_FLOAT_EQ(consensus.data<float>()[i], mean);
        EXPECT_EQ(parameters.weight().data<float>()[i], model[static_cast<size_t>(worker.rank)]);
      }
    });
  }
}

}  // namespace
}  // namespace wisp
