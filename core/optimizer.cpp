#include "core/optimizer.h"

#include "core/error.h"
#include "core/parallel.h"

namespace wisp {
namespace {

template <class T>
struct GradientRule {
  T* weight;
  const T* gradient;
  T* momentum;
  T lr, mu, decay;
  bool nesterov;
  WISP_HD void operator()(int64_t i) const {
    const T d = gradient[i] + decay * weight[i];
    const T m = mu * momentum[i] + d;
    momentum[i] = m;
    weight[i] -= lr * (nesterov ? d + mu * m : m);
  }
};

template <class T>
struct MomentumRule {
  T* weight;
  const T* gradient;
  T* momentum;
  T lr, decay;
  WISP_HD void operator()(int64_t i) const {
    momentum[i] = gradient[i];
    weight[i] -= lr * (gradient[i] + decay * weight[i]);
  }
};

template <class T>
struct SubtractRule {
  T* weight;
  const T* gradient;
  T lr;
  WISP_HD void operator()(int64_t i) const { weight[i] -= lr * gradient[i]; }
};

/// Neighbouring segments that are treated alike, with the padding between them (which stays zero).
struct Range {
  int64_t begin = 0, end = 0;
  UpdateRule rule = UpdateRule::gradient;
  bool decay = false;
};

template <class T>
void update(const Context& context, FlatParameters& parameters, const SgdOptions& options,
            double lr, Range range) {
  T* weight = parameters.weight().data<T>() + range.begin;
  const T* gradient = parameters.grad().data<T>() + range.begin;
  T* momentum = parameters.state("momentum").template data<T>() + range.begin;
  const auto rate = static_cast<T>(lr);
  const auto decay = static_cast<T>(range.decay ? options.weight_decay : 0.0);
  const int64_t count = range.end - range.begin;
  switch (range.rule) {
    case UpdateRule::gradient:
      return parallel_for(
          context.stream, count,
          GradientRule<T>{weight, gradient, momentum, rate, static_cast<T>(options.momentum), decay,
                          options.nesterov});
    case UpdateRule::momentum:
      return parallel_for(context.stream, count,
                          MomentumRule<T>{weight, gradient, momentum, rate, decay});
    case UpdateRule::update:
      return parallel_for(context.stream, count, SubtractRule<T>{weight, gradient, rate});
  }
}

}  // namespace

Sgd::Sgd(FlatParameters& parameters, SgdOptions options)
    : parameters_(parameters), options_(options) {
  WISP_CHECK(options.momentum >= 0.0 && options.momentum < 1.0, "sgd: momentum is ",
             options.momentum, ", expected 0 <= momentum < 1");
  WISP_CHECK(options.weight_decay >= 0.0, "sgd: weight decay is ", options.weight_decay,
             ", expected 0 or more");
  WISP_CHECK(!options.nesterov || options.momentum > 0.0, "sgd: nesterov needs a momentum above 0");
  parameters.state("momentum");
}

void Sgd::step(const Context& context, double lr, std::span<const UpdateRule> rules) {
  const std::span<const Segment> segments = parameters_.segments();
  WISP_CHECK(rules.size() == segments.size(), "sgd: ", rules.size(), " rules for ", segments.size(),
             " segments");
  const auto flush = [&](const Range& range) {
    if (range.end == range.begin) return;
    dispatch_float(parameters_.dtype(), "sgd", [&](auto zero) {
      update<decltype(zero)>(context, parameters_, options_, lr, range);
    });
  };
  Range range;
  for (const Segment& segment : segments) {
    const UpdateRule rule = rules[static_cast<size_t>(segment.id)];
    if (range.end == range.begin || rule != range.rule || segment.decay != range.decay) {
      flush(range);
      range = {segment.offset, segment.offset, rule, segment.decay};
    }
    range.end = segment.offset + segment.numel;
  }
  flush(range);
}

}  // namespace wisp
