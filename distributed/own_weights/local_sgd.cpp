// Local SGD: every worker makes H updates alone, then all continue from the mean of their weights.
// The momentum stays local unless local_sgd.average_momentum. Source: Stich 2019, algorithm 1, with
// equal periods.
#include "core/base/hash.h"
#include "core/train/norm.h"
#include "distributed/own_weights/own_weights.h"

namespace wisp {
namespace {

struct LocalSgdOptions {
  int64_t period = 8;  // H, in updates
  bool average_momentum = false;
};

class LocalSgd final : public WeightExchange {
 public:
  LocalSgd(const SynchronizerSite& site, LocalSgdOptions options) : site_(site), options_(options) {
    hash_ = hash_number(static_cast<uint64_t>(options.period), hash_text("local_sgd"));
    for (const Segment& segment : site_.parameters.segments())
      hash_ = hash_text(segment.name + segment.shape.str(), hash_);
  }

  void after_update(const StepInfo& info, Courier& courier) override {
    if (info.applied % options_.period != 0) return;
    average(site_.parameters.weight(), info, courier);
    if (!options_.average_momentum) return;
    for (const std::string& name : site_.parameters.state_names())
      average(site_.parameters.state(name), info, courier);
  }

  uint64_t hash() const override { return hash_; }

 private:
  void average(const Tensor& arena, const StepInfo& info, Courier& courier) {
    std::vector<Bytes> data;
    for (const Segment& segment : site_.parameters.segments()) {
      const Tensor part = FlatParameters::view(arena, segment);
      data.push_back({part.raw(), part.bytes()});
      courier.cost.bytes_encoded += part.bytes();
    }
    courier.settle();  // the weights travel from here on
    const PendingPtr sum = site_.communicator.all_reduce(data, arena.dtype(), ReduceOp::sum);
    courier.finish(*sum, "weights", info.step);
    scale(site_.comm.stream, arena.slice(0, site_.parameters.grad().shape()), 1.0 / info.summands);
  }

  const SynchronizerSite site_;
  const LocalSgdOptions options_;
  uint64_t hash_;
};

std::unique_ptr<SynchronizerRecipe> make_local_sgd(Config& config, const SynchronizerSetup& setup) {
  LocalSgdOptions options;
  config.bind_least("local_sgd.period", options.period, 1,
                    "number of updates of a worker between two averages of the weights");
  config.bind("local_sgd.average_momentum", options.average_momentum,
              "average the optimizer's state with the weights");
  const std::string idle =
      set_keys(config, {"compression.scope", "compression.guard", "compression.probe_every"});
  WISP_CHECK(idle.empty(), idle,
             " means nothing to local_sgd, which averages all weights as they are");
  WISP_CHECK(setup.rules.empty(), config.where("compression.policy"),
             ": local_sgd averages all weights as they are and knows no compression.policy");
  auto recipe = std::make_unique<SynchronizerRecipe>();
  recipe->notes.push_back(concat("local SGD: the weights are averaged every ", options.period,
                                 " updates, the momentum ",
                                 options.average_momentum ? "too" : "stays local"));
  const std::string whole =
      set_keys(config, {"compression.bucket_bytes", "compression.encode_bytes"});
  if (!whole.empty())
    recipe->notes.push_back(whole + " means nothing to local_sgd: all weights are one message");
  recipe->told_of.assign(setup.segments.size(), kDense);
  recipe->period = options.period;
  if (options.average_momentum) recipe->arenas += setup.optimizer_arenas;
  recipe->make = [options, step = setup.step](const SynchronizerSite& site) {
    return std::make_unique<OwnWeights>(site, step, std::make_unique<LocalSgd>(site, options));
  };
  return recipe;
}

const SynchronizerRegistration registration(
    "local_sgd", "local SGD: mean of the weights every H updates (Stich 2019)", make_local_sgd);

}  // namespace
}  // namespace wisp
