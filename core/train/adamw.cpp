#include "core/train/adamw.h"

#include <cmath>

#include "core/base/error.h"
#include "core/train/update_range.h"

namespace wisp {
namespace {

constexpr const char* kFirst = "momentum";
constexpr const char* kSecond = "second_moment";

/// The update of one weight from its moments.
template <class T>
struct Rule {
  T keep;                // 1 - lr · decay
  T rate;                // lr / (1 - beta1^t)
  T root_of_correction;  // sqrt(1 - beta2^s), s the updates of the second moment
  T eps;
  WISP_HD T weight(T w, T first, T second) const {
    return w * keep - rate * first / (std::sqrt(second) / root_of_correction + eps);
  }
};

template <class T>
struct AdamGradientRule {
  T* weight;
  const T* gradient;
  T* first;
  T* second;
  T beta1, beta2, share1, share2;  // share: 1 - beta
  Rule<T> rule;
  WISP_HD void operator()(int64_t i) const {
    const T g = gradient[i];
    first[i] = beta1 * first[i] + share1 * g;
    second[i] = beta2 * second[i] + share2 * g * g;
    weight[i] = rule.weight(weight[i], first[i], second[i]);
  }
};

template <class T>
struct AdamMomentRule {
  T* weight;
  const T* gradient;
  T* first;
  const T* second;
  Rule<T> rule;
  WISP_HD void operator()(int64_t i) const {
    first[i] = gradient[i];
    weight[i] = rule.weight(weight[i], first[i], second[i]);
  }
};

template <class T>
struct AdamWRow : RangeRow {
  int64_t update;
  Rule<T> rule;
};

/// One update of all weights.
template <class T>
struct AdamWStep {
  struct Shared {};
  T* weight;
  const T* gradient;
  T* first;
  T* second;
  T lr, beta1, beta2, share1, share2;  // share: 1 - beta
  RowTable<AdamWRow<T>> table = {};
  WISP_HD void operator()(const Team& team, int64_t chunk, Shared&) const {
    const AdamWRow<T>& row = table.row_of(chunk);
    const int64_t from = row.from(chunk), count = row.count(chunk);
    T* w = weight + from;
    const T* g = gradient + from;
    const auto update = static_cast<UpdateRule>(row.update);
    if (update == UpdateRule::update) {
      team.each(count, SubtractUpdate<T>{w, g, lr});
    } else if (update == UpdateRule::momentum) {
      team.each(count, AdamMomentRule<T>{w, g, first + from, second + from, row.rule});
    } else {
      team.each(count, AdamGradientRule<T>{w, g, first + from, second + from, beta1, beta2, share1,
                                           share2, row.rule});
    }
  }
};

/// `name(option)` returns the option's name for messages.
template <class Name>
void check(const AdamWOptions& o, const Name& name) {
  WISP_CHECK(o.beta1 >= 0.0 && o.beta1 < 1.0, name("beta1"), " is ", o.beta1,
             ", expected 0 <= beta1 < 1");
  WISP_CHECK(o.beta2 >= 0.0 && o.beta2 < 1.0, name("beta2"), " is ", o.beta2,
             ", expected 0 <= beta2 < 1");
  WISP_CHECK(o.eps > 0.0, name("eps"), " is ", o.eps, ", expected more than 0");
  WISP_CHECK(o.weight_decay >= 0.0, name("weight_decay"), " is ", o.weight_decay,
             ", expected 0 or more");
}

}  // namespace

AdamWOptions AdamWOptions::bind(Config& config) {
  AdamWOptions options;
  config.bind("optimizer.beta1", options.beta1, "decay rate of the first moment, in [0, 1)");
  config.bind("optimizer.beta2", options.beta2, "decay rate of the second moment, in [0, 1)");
  config.bind("optimizer.eps", options.eps,
              "constant added to the root of the second moment, above 0");
  check(options, [&](const std::string& name) {
    return concat(config.opening("optimizer." + name), "optimizer.", name);
  });
  return options;
}

AdamW::AdamW(FlatParameters& parameters, AdamWOptions options)
    : parameters_(parameters),
      options_(options),
      second_number_({static_cast<int64_t>(parameters.segments().size())}, DType::i64) {
  second_number_.clear();
  check(options, [](const std::string& name) { return "adamw: " + name; });
  parameters.state(kFirst);
  parameters.state(kSecond);
}

std::vector<std::string> AdamW::arenas() const { return {kFirst, kSecond}; }

std::vector<SavedState> AdamW::counters() const {
  return {{.name = "second_moment_number",
           .tensor = second_number_,
           .sharing = Sharing::shared,
           .check = check_counts}};
}

void AdamW::step(const Context& context, double lr, int64_t number,
                 std::span<const UpdateRule> rules) {
  WISP_CHECK(number >= 1, "adamw: update number ", number, ", they count from 1");
  const std::span second_number(second_number_.data<int64_t>(), rules.size());
  for (size_t id = 0; id < rules.size(); ++id)
    if (rules[id] == UpdateRule::gradient) ++second_number[id];
  const std::vector<UpdateRange> ranges = update_ranges(parameters_, rules, second_number);
  const AdamWOptions& o = options_;
  const double correction1 = 1.0 - std::pow(o.beta1, static_cast<double>(number));
  dispatch_float(parameters_.dtype(), "adamw", [&]<class T>(T) {
    const auto row_of = [&](const UpdateRange& range) {
      const int64_t last = second_number[static_cast<size_t>(range.first)];
      const double correction2 =
          1.0 - std::pow(o.beta2, static_cast<double>(last > 0 ? last : number));
      return AdamWRow<T>{{},
                         static_cast<int64_t>(range.rule),
                         {static_cast<T>(range.decay ? 1.0 - lr * o.weight_decay : 1.0),
                          static_cast<T>(lr / correction1), static_cast<T>(std::sqrt(correction2)),
                          static_cast<T>(o.eps)}};
    };
    const AdamWStep<T> step{parameters_.weight().data<T>(),
                            parameters_.grad().data<T>(),
                            parameters_.state(kFirst).template data<T>(),
                            parameters_.state(kSecond).template data<T>(),
                            static_cast<T>(lr),
                            static_cast<T>(o.beta1),
                            static_cast<T>(o.beta2),
                            static_cast<T>(1.0 - o.beta1),
                            static_cast<T>(1.0 - o.beta2)};
    update_all(context.stream, ranges, step, row_of);
  });
}

OptimizerRecipe recipe_of(const AdamWOptions& options) {
  return {.make = [options](FlatParameters& all) { return std::make_unique<AdamW>(all, options); },
          .arenas = 2,
          .rules = {UpdateRule::gradient, UpdateRule::momentum},
          .momentum = {.key = "optimizer.beta1", .rate = options.beta1},
          .beta2 = options.beta2};
}

}  // namespace wisp
