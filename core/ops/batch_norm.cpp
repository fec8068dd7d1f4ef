#include <array>
#include <cmath>

#include "core/backend.h"
#include "core/loops/divisor.h"
#include "core/loops/parallel.h"
#include "core/norms.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

WISP_HD inline float square_root(float x) { return sqrtf(x); }
WISP_HD inline double square_root(double x) { return sqrt(x); }

/// The inputs of the gradients in evaluation mode, where y is an affine function of x.
template <class T>
struct FrozenNorm {
  const T* x;
  const T* y;  // null without ReLU
  const T* dy;
  const Wide<T>* gamma;
  const Wide<T>* mean;
  const Wide<T>* variance;
  int64_t rows;
  Divisor channels;
  Wide<T> epsilon;

  WISP_HD Wide<T> gradient(int64_t i) const {
    return y && !(wide(y[i]) > 0) ? Wide<T>(0) : wide(dy[i]);
  }
  WISP_HD Wide<T> inv_std(int64_t c) const {
    return Wide<T>(1) / square_root(variance[c] + epsilon);
  }
};

/// The gradients of x and of the residual; each may be null. An index is an element.
template <class T>
struct FrozenNormInputs {
  FrozenNorm<T> norm;
  T* dx;
  T* d_residual;
  bool accumulate_dx, accumulate_residual;
  WISP_HD void operator()(int64_t i) const {
    const int64_t c = norm.channels.remainder(i);
    const Wide<T> g = norm.gradient(i);
    if (dx) deposit(dx + i, g * norm.gamma[c] * norm.inv_std(c), accumulate_dx);
    if (d_residual) deposit(d_residual + i, g, accumulate_residual);
  }
};

/// The gradients of gamma and beta; each may be null. An index is a channel.
template <class T>
struct FrozenNormParameters {
  FrozenNorm<T> norm;
  Wide<T>* d_gamma;
  Wide<T>* d_beta;
  bool accumulate_gamma, accumulate_beta;
  WISP_HD void operator()(int64_t c) const {
    Wide<T> sum = 0;
    Wide<T> product = 0;
    for (int64_t row = 0; row < norm.rows; ++row) {
      const int64_t i = row * norm.channels.value() + c;
      const Wide<T> g = norm.gradient(i);
      sum += g;
      product += g * (wide(norm.x[i]) - norm.mean[c]);
    }
    if (d_gamma) deposit(d_gamma + c, product * norm.inv_std(c), accumulate_gamma);
    if (d_beta) deposit(d_beta + c, sum, accumulate_beta);
  }
};

/// The wanted slots of x, gamma, beta and the residual.
std::array<GradSlot, 4> wanted_slots(Inputs& in, bool residual) {
  std::array<GradSlot, 4> slots;
  for (size_t i = 0; i < (residual ? 4u : 3u); ++i)
    if (in.wanted(i)) slots[i] = in.slot(i);
  return slots;
}

struct Saved {
  BatchNormSpec spec;
  Tensor x, gamma;
  Tensor passed;        // for a ReLU: y, or the backend's mask in training
  Tensor mean, spread;  // spread: 1 / standard deviation in training, variance in evaluation
};

void backward_training(Context& context, const Saved& saved, const Tensor& dy, Inputs& in) {
  const std::array<GradSlot, 4> to = wanted_slots(in, saved.spec.residual);
  context.backend.norms().batch_norm_dx(context.stream, saved.spec, saved.x, saved.passed, dy,
                                        saved.gamma, saved.mean, saved.spread, to[0], to[3], to[1],
                                        to[2]);
}

void backward_evaluation(Context& context, const Saved& saved, const Tensor& dy, Inputs& in) {
  const std::array<GradSlot, 4> to = wanted_slots(in, saved.spec.residual);
  dispatch_activation(dy.dtype(), "batch_norm", [&]<class T>(T) {
    const FrozenNorm<T> norm{saved.x.data<T>(),
                             saved.spec.relu ? saved.passed.data<T>() : nullptr,
                             dy.data<T>(),
                             saved.gamma.data<Wide<T>>(),
                             saved.mean.data<Wide<T>>(),
                             saved.spread.data<Wide<T>>(),
                             saved.spec.rows,
                             Divisor(saved.spec.channels),
                             static_cast<Wide<T>>(saved.spec.epsilon)};
    parallel_for(context.stream, dy.numel(),
                 FrozenNormInputs<T>{norm, to[0].into.data<T>(), to[3].into.data<T>(),
                                     to[0].accumulate, to[3].accumulate});
    parallel_for(
        context.stream, saved.spec.channels,
        FrozenNormParameters<T>{norm, to[1].into.data<Wide<T>>(), to[2].into.data<Wide<T>>(),
                                to[1].accumulate, to[2].accumulate});
  });
}

BatchNormSpec spec_of(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                      const BatchNormState& state, const BatchNormFusion& fusion) {
  WISP_CHECK(x.shape().rank() >= 2 && x.numel() > 0, "batch_norm: input ", x.shape(),
             ", expected (..., C) with at least one row");
  const Shape per_channel{x.shape()[-1]};
  const DType parameters = wide_of(x.dtype());
  for (const Tensor* tensor : {&gamma, &beta, &state.running_mean, &state.running_var}) {
    WISP_CHECK(tensor->defined() && tensor->shape() == per_channel && tensor->dtype() == parameters,
               "batch_norm: gamma, beta, running mean and variance are ", gamma.shape(), ", ",
               beta.shape(), ", ", state.running_mean.shape(), ", ", state.running_var.shape(),
               ", expected ", per_channel, " ", name_of(parameters), " for input ", x.shape());
  }
  if (fusion.residual) {
    const Tensor& residual = fusion.residual->value();
    WISP_CHECK(residual.shape() == x.shape() && residual.dtype() == x.dtype(),
               "batch_norm: residual ", residual.shape(), " ", name_of(residual.dtype()),
               ", expected ", x.shape(), " ", name_of(x.dtype()));
  }
  return {.rows = x.shape().rows(),
          .channels = x.shape()[-1],
          .epsilon = state.epsilon,
          .relu = fusion.relu,
          .residual = fusion.residual != nullptr};
}

}  // namespace

Variable batch_norm(const Variable& x, const Variable& gamma, const Variable& beta,
                    BatchNormState& state, BatchNormFusion fusion) {
  const BatchNormSpec spec = spec_of(x.value(), gamma.value(), beta.value(), state, fusion);
  if (fusion.residual && fusion.residual->node() == x.node()) {
    // fused, one pass would write both gradients to the same place
    const Variable sum = add(batch_norm(x, gamma, beta, state), x);
    return fusion.relu ? relu(sum) : sum;
  }
  Context& context = x.context();
  const Tensor residual = fusion.residual ? fusion.residual->value() : Tensor();
  Tensor y = context.empty(x.shape(), x.value().dtype());
  Saved saved{spec, x.value(), gamma.value(), spec.relu ? y : Tensor(), {}, {}};
  std::vector<Variable> inputs{x, gamma, beta};
  if (fusion.residual) inputs.push_back(*fusion.residual);

  if (!context.training) {
    context.backend.norms().batch_norm_eval(context.stream, spec, x.value(), gamma.value(),
                                            beta.value(), residual, state.running_mean,
                                            state.running_var, y);
    saved.mean = state.running_mean;
    saved.spread = state.running_var;
    if (context.log) {  // constants that only readers of the log need
      inputs.emplace_back(context, state.running_mean);
      inputs.emplace_back(context, state.running_var);
    }
    return record("batch_norm", y, inputs,
                  [&context, saved](const Tensor& dy, Inputs& in) {
                    backward_evaluation(context, saved, dy, in);
                  },
                  {{"epsilon", spec.epsilon}, {"relu", spec.relu}, {"residual", spec.residual}});
  }
  WISP_CHECK(spec.rows >= 2, "batch_norm: input ", x.shape(),
             " has one row, batch statistics need at least 2");
  saved.mean = context.empty({spec.channels}, gamma.value().dtype());
  saved.spread = context.empty({spec.channels}, gamma.value().dtype());
  Tensor mask;
  const int64_t mask_bytes = context.backend.norms().relu_mask_bytes(spec, x.value().dtype());
  if (mask_bytes > 0) saved.passed = mask = context.empty({mask_bytes}, DType::u8);
  context.backend.norms().batch_norm(context.stream, spec, x.value(), gamma.value(), beta.value(),
                                     residual, state.momentum, state.running_mean,
                                     state.running_var, saved.mean, saved.spread, y, mask);
  return record("batch_norm", y, inputs, [&context, saved](const Tensor& dy, Inputs& in) {
    backward_training(context, saved, dy, in);
  });
}

}  // namespace wisp
