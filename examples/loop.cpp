// Data parallelism around a training loop of your own, without a configuration: four workers learn
// which points of a square lie in a circle, and exchange 5 % of their gradients.
#include <cstdio>
#include <exception>

#include "core/backend.h"
#include "core/random.h"
#include "core/train/sgd.h"
#include "distributed/averaging/gradient_averaging.h"
#include "distributed/launch.h"
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

std::vector<Method> topk(int workers) {
  Config defaults;
  std::vector<Method> methods;
  methods.push_back(
      {"topk",
       CompressorRegistry::instance().find("method", "topk").make(defaults, {.workers = workers})});
  return methods;
}

void train(Worker& worker) {
  // This thread computes with one context; the synchronizer's thread encodes with the other.
  MemoryPool pool;
  const Stream stream = Stream::on({}), comm_stream = Stream::on({});
  const auto backend = make_backend(pool, stream), comm_backend = make_backend(pool, comm_stream);
  Context compute{stream, *backend, pool}, comm{comm_stream, *comm_backend, pool};

  Net net;  // the same first weights on all workers
  FlatParameters parameters(compute, net.parameters(), net.buffers());
  Sgd sgd(parameters, {.momentum = 0.0});  // topk sends gradients late, which upsets a momentum
  Trace trace(worker.rank, {});
  AveragingOptions options;
  options.ratio = [](double) { return 0.05; };
  GradientAveraging sync(worker.communicator, compute, comm, parameters,
                         topk(worker.communicator.size()),
                         std::vector<int>(parameters.segments().size(), 0), options, trace);

  Tensor points({64, 2}, DType::f32), inside({64}, DType::i32);
  constexpr double kRate = 0.5;
  for (int64_t step = 0; step < 200; ++step) {
    draw(Philox(1, static_cast<uint64_t>(step), static_cast<uint64_t>(worker.rank)), points,
         inside);
    sync.begin({.step = step, .lr = kRate});
    const Variable loss = cross_entropy(net(Variable(compute, points)), inside);
    sync.forward_done(loss.value());
    backward(loss, {.seed = 1.0 / sync.summands()});  // gradients travel meanwhile
    if (sync.before_update() != Outcome::skipped)
      sgd.step(compute, kRate, sync.updates(), sync.rules());
    sync.after_update();
    if (worker.rank == 0 && step % 40 == 39)
      std::printf("step %3d: loss %.3f, %d bytes sent instead of %d\n", static_cast<int>(step) + 1,
                  static_cast<double>(*loss.value().data<float>()),
                  static_cast<int>(sync.cost().bytes_sent),
                  static_cast<int>(sync.cost().bytes_dense));
  }
}

}  // namespace wisp::examples

int main() try {
  wisp::run_workers(4, {.threads = 1}, wisp::examples::train);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
