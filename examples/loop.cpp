// Data parallelism around a training loop of your own, without a configuration: four workers learn
// which points of a square lie in a circle, and exchange 5 % of their gradients.
#include <cstdio>
#include <exception>

#include "compression/methods/methods.h"
#include "core/random.h"
#include "core/train/sgd.h"
#include "distributed/averaging/data_parallel.h"
#include "layers/linear.h"

namespace wisp::examples {

struct Net final : Module {
  Net() {
    child("hidden", hidden);
    child("out", out);
  }
  Variable operator()(const Variable& x) const { return out(relu(hidden(x))); }

  Linear hidden{2, 256}, out{256, 2};
};

/// Fills a batch of one worker.
void draw(const Philox& random, Tensor& points, Tensor& inside) {
  for (int64_t i = 0; i < points.shape()[0]; ++i) {
    float* p = points.data<float>() + 2 * i;
    for (int64_t axis : {0, 1})
      p[axis] = 2 * random.uniform(static_cast<uint64_t>(2 * i + axis)) - 1;
    inside.data<int32_t>()[i] = p[0] * p[0] + p[1] * p[1] < 0.6f;
  }
}

void train(Worker& worker) {
  constexpr double kMomentum = 0.9, kRate = 0.1;
  MemoryPool pool;
  Net net;
  DataParallelOptions options;
  options.method = {"dgc", make_dgc({.local = {.momentum = kMomentum}})};
  options.averaging.ratio = [](double /*epoch*/) { return 0.05; };
  DataParallel parallel(worker, pool, net.parameters(), net.buffers(),
                        recipe_of(SgdOptions{.momentum = kMomentum}), std::move(options));

  Tensor points({64, 2}, DType::f32), inside({64}, DType::i32);
  for (uint64_t step = 1; step <= 200; ++step) {
    draw(Philox(1, step, static_cast<uint64_t>(worker.rank)), points, inside);
    const Variable loss = cross_entropy(net(Variable(parallel.context(), points)), inside);
    parallel.step(loss, kRate);
    if (worker.rank == 0 && step % 40 == 0)
      std::printf("step %3d: loss %.3f, %d bytes sent instead of %d\n", static_cast<int>(step),
                  static_cast<double>(*loss.value().data<float>()),
                  static_cast<int>(parallel.cost().bytes_sent),
                  static_cast<int>(parallel.cost().bytes_dense));
  }
}

}  // namespace wisp::examples

int main() try {
  wisp::run_workers(4, {.threads = 1}, wisp::examples::train);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
