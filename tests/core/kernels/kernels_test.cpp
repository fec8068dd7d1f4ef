// Tests of our kernels on a device, in place of a library's. They give the CPU's bits and read no
// pointer of the host. backend_test and backend_rnn_test test their results beside other backends.
#include <gtest/gtest.h>

#include "core/copy.h"
#include "core/loops/parallel_teams.h"
#include "core/random.h"
#include "tests/support/devices.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// Drawn tensors on a device, and the results of the calls made with them.
class Calls {
 public:
  Calls(Device device, DType type)
      : rig_({.compute = type, .library = Library::kernels, .device = device}), type_(type) {}

  Backend& backend() { return *rig_.backend; }
  const Stream& stream() const { return rig_.stream; }
  Tensor drawn(Shape shape, DType type) {
    const Philox philox(1, 0, next_++);
    std::vector<double> numbers(static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < numbers.size(); ++i) {
      const float number = 2.0f * philox.uniform(i) - 1.0f;
      numbers[i] = static_cast<double>(wide(BFloat16(number)));
    }
    const Tensor there = rig_.context.empty(shape, type);
    copy_now(rig_.stream, tensor(shape, numbers, type), there);
    return there;
  }
  Tensor activation(Shape shape) { return drawn(shape, type_); }
  Tensor parameter(Shape shape) { return drawn(shape, wide_of(type_)); }
  Tensor empty(Shape shape, DType type) { return rig_.context.empty(shape, type); }

  void made(const Tensor& result) { results_.push_back(result); }
  std::vector<std::vector<double>> results() {
    std::vector<std::vector<double>> all;
    for (const Tensor& result : results_) all.push_back(values(fetch(rig_.stream, result)));
    return all;
  }

 private:
  TestContext rig_;
  DType type_;
  uint64_t next_ = 0;
  std::vector<Tensor> results_;
};

void normalise(Calls& calls, int64_t rows, int64_t all_channels, bool relu) {
  const BatchNormSpec spec{.rows = rows, .channels = all_channels, .relu = relu, .residual = relu};
  const Shape shape{spec.rows, spec.channels}, channels{spec.channels};
  const Tensor x = calls.activation(shape), residual = calls.activation(shape);
  const Tensor dy = calls.activation(shape);
  const Tensor gamma = calls.parameter(channels), beta = calls.parameter(channels);
  Tensor running_mean = calls.parameter(channels), running_var = calls.parameter(channels);
  Tensor mean = calls.parameter(channels), inv_std = calls.parameter(channels);
  Tensor y = calls.activation(shape), evaluated = calls.activation(shape);
  const int64_t mask_bytes = calls.backend().norms().relu_mask_bytes(spec, x.dtype());
  Tensor mask = relu ? calls.empty({mask_bytes}, DType::u8) : Tensor();
  calls.backend().norms().batch_norm(calls.stream(), spec, x, gamma, beta, residual, 0.1,
                                     running_mean, running_var, mean, inv_std, y, mask);
  calls.backend().norms().batch_norm_eval(calls.stream(), spec, x, gamma, beta, residual, beta,
                                          calls.parameter(channels), evaluated);
  GradSlot dx{calls.activation(shape), true}, d_residual{calls.activation(shape), false};
  GradSlot d_gamma{calls.parameter(channels), true}, d_beta{calls.parameter(channels), false};
  calls.backend().norms().batch_norm_dx(calls.stream(), spec, x, mask, dy, gamma, mean, inv_std, dx,
                                        d_residual, d_gamma, d_beta);
  for (const Tensor& result : {running_mean, running_var, mean, inv_std, y, dx.into,
                               d_residual.into, d_gamma.into, d_beta.into})
    calls.made(result);
}

void pool(Calls& calls, int64_t channels) {
  const PoolSpec spec{.batch = 2,
                      .height = 9,
                      .width = 7,
                      .channels = channels,
                      .kernel = 3,
                      .stride = 2,
                      .pad = 1};
  const Tensor x = calls.activation({2, 9, 7, channels});
  const Shape out{2, spec.out_height(), spec.out_width(), channels};
  Tensor largest = calls.activation(out), mean = calls.activation(out);
  Tensor argmax = calls.empty(out, DType::i32);
  const GradSlot d_largest{calls.activation(x.shape()), true};
  const GradSlot d_mean{calls.activation(x.shape()), false};
  calls.backend().pools().max_pool(calls.stream(), spec, x, largest, argmax);
  calls.backend().pools().avg_pool(calls.stream(), spec, x, mean);
  calls.backend().pools().max_pool_dx(calls.stream(), spec, largest, argmax, d_largest);
  calls.backend().pools().avg_pool_dx(calls.stream(), spec, mean, d_mean);
  for (const Tensor& result : {largest, mean, d_largest.into, d_mean.into}) calls.made(result);
}

/// `matrices` is the type of the weights, except biases.
void recur(Calls& calls, RnnCell cell, DType type, DType matrices) {
  const RnnSpec spec{cell, 5, 7, 2, {4, 4, 2, 1}};
  const int64_t gates = spec.gates() * spec.hidden;
  const auto state = [&] {
    return RnnState{calls.activation({2, 4, 7}),
                    cell == RnnCell::lstm ? calls.activation({2, 4, 7}) : Tensor()};
  };
  std::vector<RnnWeights> weights;
  std::vector<RnnGradients> gradients;
  for (int d = 0; d < 2; ++d) {
    const auto slot = [&](Shape shape) { return GradSlot{calls.parameter(shape), d == 0}; };
    weights.push_back({calls.drawn({gates, 5}, matrices), calls.drawn({gates, 7}, matrices),
                       calls.parameter({gates}), calls.parameter({gates})});
    gradients.push_back({slot({gates, 5}), slot({gates, 7}), slot({gates}), slot({gates})});
  }
  const Tensor x = calls.activation({11, 5}), dy = calls.activation({11, 14});
  Tensor y = calls.activation({11, 14});
  const RnnState before = state();
  RnnState after = state();
  Tensor saved = calls.empty({calls.backend().recurrent().rnn_saved_bytes(spec, type)}, DType::u8);
  calls.backend().recurrent().rnn(calls.stream(), spec, x, weights, before, y, after, saved);
  GradSlot dx{calls.activation({11, 5}), true};
  calls.backend().recurrent().rnn_dx(calls.stream(), spec, y, dy, weights, before, saved, dx);
  calls.backend().recurrent().rnn_dw(calls.stream(), spec, x, y, before, saved, gradients);
  for (const Tensor& result : {y, after.h, dx.into}) calls.made(result);
  if (cell == RnnCell::lstm) calls.made(after.c);
  for (const RnnGradients& g : gradients)
    for (const GradSlot& made : {g.input, g.recurrent, g.input_bias, g.recurrent_bias})
      calls.made(made.into);
}

using Results = std::vector<std::vector<double>>;

Results norms_and_pools(Device device, DType type) {
  Calls calls(device, type);
  normalise(calls, 900, 6, true);
  normalise(calls, 901, 24, true);   // several channels a thread
  normalise(calls, 9003, 8, false);  // more chunks than a team reads at once
  pool(calls, 5);
  pool(calls, 24);
  return calls.results();
}

Results recurrent(Device device, DType type, DType matrices) {
  Calls calls(device, type);
  for (const RnnCell cell : {RnnCell::tanh, RnnCell::lstm, RnnCell::gru})
    recur(calls, cell, type, matrices);
  return calls.results();
}

Results recurrent(Device device, DType type) { return recurrent(device, type, wide_of(type)); }

/// Expects equal bits, except on a GPU, where a library computes the products in between.
void expect_recurrent(const Results& actual, const Results& expected, DType type) {
  if (std::string(device_kind()) != "cuda") {
    EXPECT_EQ(actual, expected);
    return;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    double error = 0.0, norm = 0.0;
    for (size_t j = 0; j < expected[i].size(); ++j) {
      const double apart = actual[i][j] - expected[i][j];
      error += apart * apart;
      norm += expected[i][j] * expected[i][j];
    }
    EXPECT_LE(error, (type == DType::bf16 ? 2e-4 : 1e-7) * norm) << "result " << i;
  }
}

class OwnKernelsOnDevices : public DeviceTest, public testing::WithParamInterface<DType> {};

TEST_P(OwnKernelsOnDevices, HaveTheBitsOfTheCpu) {
  const DType type = GetParam();
  const Results expected = norms_and_pools({}, type), expected_states = recurrent({}, type);
  EXPECT_EQ(norms_and_pools(first_device(), type), expected);
  expect_recurrent(recurrent(first_device(), type), expected_states, type);
  const ShuffledTeams shuffled(3);
  EXPECT_EQ(norms_and_pools(first_device(), type), expected);
}

INSTANTIATE_TEST_SUITE_P(Types, OwnKernelsOnDevices,
                         testing::Values(DType::f32, DType::bf16, DType::f64),
                         [](const auto& tested) { return name_of(tested.param); });

TEST(OwnKernels, TakesRecurrentWeightsThatAreRoundedAlready) {
  EXPECT_EQ(recurrent({}, DType::bf16, DType::bf16), recurrent({}, DType::bf16, DType::f32));
}

}  // namespace
}  // namespace wisp
