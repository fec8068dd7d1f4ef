// An optimizer of your own: Lion moves each weight by the sign of a mean of gradients. Source: Chen
// et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2.
#include "core/base/error.h"
#include "core/loops/parallel.h"
#include "core/train/optimizer_recipe.h"

namespace wisp::lion {

struct Options {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0;
};

template <class T>
struct Update {
  T* w;
  const T* g;
  T* m;
  T lr, beta1, beta2, decay;
  WISP_HD void operator()(int64_t i) const {
    const T c = beta1 * m[i] + (1 - beta1) * g[i];
    const T sign = c > 0 ? T(1) : c < 0 ? T(-1) : T(0);
    w[i] -= lr * (sign + decay * w[i]);
    m[i] = beta2 * m[i] + (1 - beta2) * g[i];
  }
};

class Lion final : public Optimizer {
 public:
  Lion(FlatParameters& parameters, Options options) : parameters_(parameters), options_(options) {
    parameters_.state("mean");
  }
  void step(const Context& context, double lr, int64_t,
            std::span<const UpdateRule> rules) override {
    WISP_CHECK(rules.size() == parameters_.segments().size(), "lion: ", rules.size(), " rules for ",
               parameters_.segments().size(), " segments");
    dispatch_float(parameters_.dtype(), "lion", [&](auto zero) {
      using T = decltype(zero);
      T* w = parameters_.weight().data<T>();
      const T* g = parameters_.grad().data<T>();
      T* m = parameters_.state("mean").template data<T>();
      for (const Segment& s : parameters_.segments())
        parallel_for(context.stream, s.numel,
                     Update<T>{w + s.offset, g + s.offset, m + s.offset, static_cast<T>(lr),
                               static_cast<T>(options_.beta1), static_cast<T>(options_.beta2),
                               static_cast<T>(s.decay ? options_.weight_decay : 0.0)});
    });
  }
  std::vector<std::string> arenas() const override { return {"mean"}; }

 private:
  FlatParameters& parameters_;
  Options options_;
};

std::unique_ptr<OptimizerRecipe> make(Config& config, double weight_decay) {
  Options options{.weight_decay = weight_decay};
  config.bind("optimizer.beta1", options.beta1, "decay rate of the mean in an update, in [0, 1)");
  config.bind("optimizer.beta2", options.beta2, "decay rate of the mean that is kept, in [0, 1)");
  for (const auto& [key, beta] :
       {std::pair("optimizer.beta1", options.beta1), std::pair("optimizer.beta2", options.beta2)})
    config.expect(beta >= 0.0 && beta < 1.0, key, beta, "a number in [0, 1)");
  auto recipe = std::make_unique<OptimizerRecipe>();
  recipe->make = [options](FlatParameters& parameters) {
    return std::make_unique<Lion>(parameters, options);
  };
  recipe->arenas = 1;
  return recipe;
}

const OptimizerRegistration registration("lion", "sign of a mean of gradients (Chen et al. 2023)",
                                         make);

}  // namespace wisp::lion
