#include "core/train/sgd.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/train/update_range.h"

namespace wisp {
namespace {

template <class T>
struct SgdGradientRule {
  T* weight;
  const T* gradient;
  T* momentum;
  T lr, mu, share, decay;  // share: weight of the gradient in the momentum
  bool nesterov;
  WISP_HD void operator()(int64_t i) const {
    const T d = gradient[i] + decay * weight[i];
    const T m = mu * momentum[i] + share * d;
    momentum[i] = m;
    weight[i] -= lr * (nesterov ? d + mu * m : m);
  }
};

/// SgdGradientRule for a momentum of 0.
template <class T>
struct PlainRule {
  T* weight;
  const T* gradient;
  T lr, decay;
  WISP_HD void operator()(int64_t i) const { weight[i] -= lr * (gradient[i] + decay * weight[i]); }
};

template <class T>
struct SgdMomentumRule {
  T* weight;
  const T* gradient;
  T* momentum;
  T lr, decay;
  WISP_HD void operator()(int64_t i) const {
    momentum[i] = gradient[i];
    weight[i] -= lr * (gradient[i] + decay * weight[i]);
  }
};

struct SgdRow : RangeRow {
  int64_t rule;
  double decay;
};

/// One update of all weights.
template <class T>
struct SgdStep {
  struct Shared {};
  T* weight;
  const T* gradient;
  T* momentum;  // null if no rule uses it
  T lr, mu, share;
  bool nesterov, plain;
  RowTable<SgdRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t chunk, Shared&) const {
    const SgdRow& row = table.row_of(chunk);
    const int64_t from = row.from(chunk), count = row.count(chunk);
    T* w = weight + from;
    const T* g = gradient + from;
    const auto rule = static_cast<UpdateRule>(row.rule);
    const auto decay = static_cast<T>(row.decay);
    if (rule == UpdateRule::update) {
      team.each(count, SubtractUpdate<T>{w, g, lr});
    } else if (rule == UpdateRule::momentum) {
      team.each(count, SgdMomentumRule<T>{w, g, momentum + from, lr, decay});
    } else if (plain) {
      team.each(count, PlainRule<T>{w, g, lr, decay});
    } else {
      team.each(count, SgdGradientRule<T>{w, g, momentum + from, lr, mu, share, decay, nesterov});
    }
  }
};

/// `name(option)` returns the option's name for messages.
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
  config.bind("optimizer.momentum", options.momentum, "momentum, in [0, 1)");
  config.bind("optimizer.nesterov", options.nesterov, "Nesterov momentum");
  config.bind("optimizer.dampening", options.dampening,
              "share of the gradient left out of the momentum, in [0, 1)");
  check(options, [&](const std::string& name) {
    return concat(config.opening("optimizer." + name), "optimizer.", name);
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
  const std::vector<UpdateRange> ranges = update_ranges(parameters_, rules);
  const bool plain = options_.momentum == 0.0;
  const bool keeps = !plain || std::ranges::count(rules, UpdateRule::momentum) > 0;
  dispatch_float(parameters_.dtype(), "sgd", [&]<class T>(T) {
    T* momentum = keeps ? parameters_.state("momentum").template data<T>() : nullptr;
    const SgdStep<T> step{parameters_.weight().data<T>(),
                          parameters_.grad().data<T>(),
                          momentum,
                          static_cast<T>(lr),
                          static_cast<T>(options_.momentum),
                          static_cast<T>(number == 1 ? 1.0 : 1.0 - options_.dampening),
                          options_.nesterov,
                          plain};
    update_all(context.stream, ranges, step, [&](const UpdateRange& range) {
      return SgdRow{
          {}, static_cast<int64_t>(range.rule), range.decay ? options_.weight_decay : 0.0};
    });
  });
}

OptimizerRecipe recipe_of(const SgdOptions& options) {
  return {
      .make = [options](FlatParameters& all) { return std::make_unique<Sgd>(all, options); },
      .arenas = options.momentum > 0.0 ? 1 : 0,
      .rules = {UpdateRule::gradient, UpdateRule::update},
      .momentum = {"optimizer.momentum", options.momentum, options.nesterov, options.dampening}};
}

}  // namespace wisp
