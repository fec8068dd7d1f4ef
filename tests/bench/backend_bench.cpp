// Times the library ops of one ResNet-20 training step (batch 128, 32 x 32 images): every
// convolution and batch norm on tensors of its own, as in a real step. Prints the least time of
// each class of ops over the repetitions, in f32 and in bf16. Usage: backend_bench [repetitions]
#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/convolutions.h"
#include "core/norms.h"
#include "core/random.h"

namespace wisp {
namespace {

constexpr int64_t kBatch = 128;

Tensor random(Shape shape, DType dtype, double offset = 0.0) {
  Tensor t(shape, dtype);
  const Philox philox(1, 0, 0);
  dispatch_activation(dtype, "random", [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < t.numel(); ++i)
      store(t.data<T>() + i, static_cast<Wide<T>>(philox.uniform(static_cast<uint64_t>(i)) - 0.5f +
                                                  static_cast<float>(offset)));
  });
  return t;
}

/// A 3x3 convolution, the batch norm behind it, and their tensors.
struct Layer {
  ConvSpec conv;
  BatchNormSpec norm;
  bool image = false;       // the first layer: no dx
  bool second_use = false;  // x also feeds a shortcut, so dx is added to its gradient
  Tensor x, w, y, out, dout, dy, dx, dw, residual, d_residual;
  Tensor gamma, beta, running_mean, running_var, mean, inv_std, d_gamma, d_beta;

  Layer(DType dtype, int64_t in, int64_t out_channels, int64_t size, int64_t stride,
        bool residual_add)
      : conv{.batch = kBatch,
             .height = size,
             .width = size,
             .in_channels = in,
             .out_channels = out_channels,
             .kernel = 3,
             .stride = stride,
             .pad = 1} {
    const int64_t out_size = conv.out_height();
    const Shape x_shape{kBatch, size, size, in};
    const Shape y_shape{kBatch, out_size, out_size, out_channels};
    const Shape w_shape{out_channels, 3, 3, in};
    norm = {.rows = kBatch * out_size * out_size,
            .channels = out_channels,
            .relu = true,
            .residual = residual_add};
    for (Tensor* image_in : {&x, &dx}) *image_in = random(x_shape, dtype);
    for (Tensor* image_out : {&y, &out, &dout, &dy}) *image_out = random(y_shape, dtype);
    if (residual_add) residual = random(y_shape, dtype), d_residual = random(y_shape, dtype);
    for (Tensor* weight : {&w, &dw}) *weight = random(w_shape, wide_of(dtype));
    for (Tensor* channel :
         {&gamma, &beta, &running_mean, &running_var, &mean, &inv_std, &d_gamma, &d_beta})
      *channel = random({out_channels}, wide_of(dtype), 1.0);
  }
};

std::vector<Layer> resnet20(DType dtype) {
  std::vector<Layer> layers;
  layers.emplace_back(dtype, 3, 16, 32, 1, false);
  layers.front().image = true;
  int64_t in = 16;
  int64_t size = 32;
  for (const int64_t channels : {16, 32, 64}) {
    for (int block = 0; block < 3; ++block) {
      const int64_t stride = channels == in ? 1 : 2;
      layers.emplace_back(dtype, in, channels, size, stride, false);
      layers.back().second_use = true;
      size /= stride;
      in = channels;
      layers.emplace_back(dtype, in, channels, size, 1, true);
    }
  }
  return layers;
}

/// Milliseconds of one step by class of op.
class StepTimes {
 public:
  void time(const std::string& op, const std::function<void()>& run) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    ms_[op] += elapsed.count();
    ms_["total"] += elapsed.count();
  }
  const std::map<std::string, double>& ms() const { return ms_; }

 private:
  std::map<std::string, double> ms_;
};

std::string name(const char* op, const ConvSpec& conv) {
  return fmt::format("{} {}->{}", op, conv.in_channels, conv.out_channels);
}

StepTimes run_step(Backend& backend, const Stream& stream, std::vector<Layer>& layers) {
  StepTimes times;
  Tensor no_mask;  // a CPU's backend keeps none
  for (Layer& l : layers) {
    times.time(name("conv forward", l.conv), [&] {
      backend.convolutions().convolve(stream, ConvPass::forward, l.conv, l.x, l.w, {l.y});
    });
    times.time("norm forward", [&] {
      backend.norms().batch_norm(stream, l.norm, l.y, l.gamma, l.beta,
                                 l.norm.residual ? l.residual : Tensor(), 0.1, l.running_mean,
                                 l.running_var, l.mean, l.inv_std, l.out, no_mask);
    });
  }
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    Layer& l = *layer;
    GradSlot dy{l.dy}, d_residual{l.d_residual}, d_gamma{l.d_gamma}, d_beta{l.d_beta};
    times.time("norm backward", [&] {
      backend.norms().batch_norm_dx(stream, l.norm, l.y, l.out, l.dout, l.gamma, l.mean, l.inv_std,
                                    dy, l.norm.residual ? d_residual : GradSlot{}, d_gamma, d_beta);
    });
    times.time(name("conv dw", l.conv), [&] {
      backend.convolutions().convolve(stream, ConvPass::dw, l.conv, l.x, l.dy, {l.dw});
    });
    if (l.image) continue;
    times.time(name("conv dx", l.conv), [&] {
      backend.convolutions().convolve(stream, ConvPass::dx, l.conv, l.dy, l.w,
                                      {l.dx, l.second_use});
    });
  }
  return times;
}

void report(DType dtype, int threads, int repetitions, std::vector<Layer>& layers) {
  omp_set_num_threads(threads);
  MemoryPool pool;
  const Stream stream = Stream::immediate();
  const std::unique_ptr<Backend> backend = make_backend(pool, stream);
  run_step(*backend, stream, layers);
  std::map<std::string, double> least;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const StepTimes times = run_step(*backend, stream, layers);
    for (const auto& [op, ms] : times.ms()) {
      const auto [place, first] = least.emplace(op, ms);
      if (!first) place->second = std::min(place->second, ms);
    }
  }
  fmt::print("{} {}, threads {}, ms:", backend->name(), name_of(dtype), threads);
  for (const auto& [op, ms] : least) fmt::print("  {} {:.1f}", op, ms);
  fmt::print("  workspace MB {:.1f}\n", static_cast<double>(pool.stats().used_bytes) / 1e6);
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) try {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 10;
  if (repetitions < 1) {
    std::fprintf(stderr, "usage: backend_bench [repetitions]\n");
    return 2;
  }
  for (const wisp::DType dtype : {wisp::DType::f32, wisp::DType::bf16}) {
    if (!wisp::missing_for(dtype).empty()) continue;
    std::vector<wisp::Layer> layers = wisp::resnet20(dtype);
    for (const int threads : {1, 2}) wisp::report(dtype, threads, repetitions, layers);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "backend_bench: %s\n", error.what());
  return 1;
}
