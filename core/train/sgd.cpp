#include "core/train/sgd.h"

#include "core/error.h"
#include "core/parallel.h"
#include "core/train/update_range.h"

namespace wisp {
namespace {

template <class T>
struct GradientRule {
  T* weight;
  const T* gradient;
  T* momentum;
  T lr, mu, share, decay;  // share: of the gradient, in the momentum
  bool nesterov;
  WISP_HD void operator()(int64_t i) const {
    const T d = gradient[i] + decay * weight[i];
    const T m = mu * momentum[i] + share * d;
    momentum[i] = m;
    weight[i] -= lr * (nesterov ? d + mu * m : m);
  }
};

/// With a momentum of 0.
template <class T>
struct PlainRule {
  T* weight;
  const T* gradient;
  T lr, decay;
  WISP_HD void operator()(int64_t i) const { weight[i] -= lr * (gradient[i] + decay * weight[i]); }
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
void update(const Context& context, FlatParameters& parameters, const SgdOptions& options,
            double lr, bool first, const UpdateRange& range) {
  T* weight = parameters.weight().data<T>() + range.begin;
  const T* gradient = parameters.grad().data<T>() + range.begin;
  const auto rate = static_cast<T>(lr);
  const auto decay = static_cast<T>(range.decay ? options.weight_decay : 0.0);
  const int64_t count = range.end - range.begin;
  if (options.momentum == 0.0 && range.rule == UpdateRule::gradient)
    return parallel_for(context.stream, count, PlainRule<T>{weight, gradient, rate, decay});
  T* momentum = parameters.state("momentum").template data<T>() + range.begin;
  if (range.rule == UpdateRule::gradient) {
    const auto share = static_cast<T>(first ? 1.0 : 1.0 - options.dampening);
    parallel_for(context.stream, count,
                 GradientRule<T>{weight, gradient, momentum, rate, static_cast<T>(options.momentum),
                                 share, decay, options.nesterov});
  } else {
    parallel_for(context.stream, count, MomentumRule<T>{weight, gradient, momentum, rate, decay});
  }
}

/// `name(option)`: what a message calls it.
template <class Name>
void check(const SgdOptions& o, const Name& name) {
  WISP_CHECK(o.momentum >= 0.0 && o.momentum < 1.0, name("momentum"), " is ", o.momentum,
             ", expected 0 <= momentum < 1");
  WISP_CHECK(o.dampening >= 0.0 && o.dampening < 1.0, name("dampening"), " is ", o.dampening,
             ", expected 0 <= dampening < 1");
  WISP_CHECK(o.dampening == 0.0 || o.momentum > 0.0, name("dampening"), " is ", o.dampening,
             ", which needs a momentum above 0 to act on");
  WISP_CHECK(!o.nesterov || o.momentum > 0.0, name("nesterov"), " needs a momentum above 0");
  WISP_CHECK(!o.nesterov || o.dampening == 0.0, name("nesterov"), " needs a dampening of 0, not ",
             o.dampening);
  WISP_CHECK(o.weight_decay >= 0.0, name("weight_decay"), " is ", o.weight_decay,
             ", expected 0 or more");
}

}  // namespace

SgdOptions SgdOptions::bind(Config& config) {
  SgdOptions options;
  config.bind("optimizer.momentum", options.momentum, "sgd: momentum, in [0, 1)");
  config.bind("optimizer.nesterov", options.nesterov, "sgd: Nesterov's form of momentum");
  config.bind("optimizer.dampening", options.dampening,
              "sgd: share of the gradient that does not enter the momentum, in [0, 1)");
  check(options, [&](const std::string& name) {
    return concat(config.where("optimizer." + name), ": optimizer.", name);
  });
  return options;
}

Sgd::Sgd(FlatParameters& parameters, SgdOptions options)
    : parameters_(parameters), options_(options) {
  check(options, [](const std::string& name) { return "sgd: " + name; });
  if (options_.momentum > 0.0) parameters.state("momentum");
}

std::vector<std::string> Sgd::arenas() const {
  return options_.momentum > 0.0 ? std::vector<std::string>{"momentum"}
                                 : std::vector<std::string>{};
}

void Sgd::step(const Context& context, double lr, int64_t number,
               std::span<const UpdateRule> rules) {
  for (const UpdateRange& range : update_ranges(parameters_, rules)) {
    if (range.rule == UpdateRule::update) {
      subtract_update(context, parameters_, range, lr);
      continue;
    }
    dispatch_float(parameters_.dtype(), "sgd", [&](auto zero) {
      update<decltype(zero)>(context, parameters_, options_, lr, number == 1, range);
    });
  }
}

}  // namespace wisp
