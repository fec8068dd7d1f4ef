// Tests of runs that repeatedly change their number of workers or the cut of the model. Nothing
// that a method keeps for later may be lost or counted twice.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <numeric>

#include "apps/run/saved_files.h"
#include "core/base/hash.h"
#include "core/io/checkpoint_directory.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_replica.h"
#include "tests/support/tiny_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

constexpr double kMomentum = 0.9;
constexpr int64_t kStepsOfLeg = 3;

/// A part of a run, from one checkpoint to the next.
struct Leg {
  int workers = 4;
  int64_t bucket_bytes = 1024;
  bool dense = false;  // the method has not started, or its ratio is 1
};
struct Chain {
  std::vector<Leg> legs;
  bool guard = true;
};

/// A method and its options in these runs.
struct Variant {
  std::string method;
  std::string options = {};
  bool nesterov = false;
};

std::string toml_of(const Variant& variant, bool dense) {
  const auto set = [&](const std::string& option, const char* value) {
    return method_knows(variant.method, "compression." + option)
               ? concat("compression.", option, " = ", value, "\n")
               : std::string();
  };
  return set("start_after", dense ? "1000" : "0") + set("freeze_step", dense ? "1000" : "2") +
         set("masking", "false") + variant.options;
}

std::unique_ptr<Compressor> make_one(const Variant& variant, bool dense = false) {
  return make_method(
      variant.method, toml_of(variant, dense),
      {.workers = 4, .momentum = kMomentum, .nesterov = variant.nesterov, .beta2 = 0.99});
}

ReplicaOptions options_of(const Variant& variant, const Leg& leg, bool guard) {
  ReplicaOptions options;
  options.shapes = {{300}, {7, 5}, {1}, {64, 8}, {40, 30}, {33}, {12, 2}};
  options.methods = [variant, dense = leg.dense] {
    std::unique_ptr<Compressor> made = make_one(variant, dense);
    const Scope scope = made->traits().scopes.front();
    std::vector<Method> methods;
    methods.push_back({variant.method, std::move(made), scope});
    return methods;
  };
  const std::shared_ptr<Compressor> judge = make_one(variant);
  options.method_of = [judge](const Segment& segment) {
    return judge->refusal(field_of(segment)).empty() ? 0 : kDense;
  };
  options.averaging.buckets = {.bucket_bytes = leg.bucket_bytes};
  options.averaging.guard = guard;
  options.averaging.ratio = [dense = leg.dense](double) { return dense ? 1.0 : 0.05; };
  return options;
}

/// Noise in [-1.75, 0.25), so that the gradients add up.
float noise(int rank, int64_t step, int segment, int64_t i) {
  const uint64_t key = hash_number(static_cast<uint64_t>(rank * 64 + segment),
                                   hash_number(static_cast<uint64_t>(step), 3));
  const uint64_t drawn = hash_number(static_cast<uint64_t>(i), key);
  return static_cast<float>(drawn >> 40) * 0x1p-23f - 1.75f;
}

/// A run's gradients and updates so far, by element, and the updates that its checkpoint keeps.
struct Ledger {
  std::vector<double> given;          // gradients, summed over workers and steps
  std::vector<double> moved;          // updates made, at a learning rate of 1
  std::vector<double> owed;           // updates still to come from momenta and residuals
  std::vector<double> tracked;        // of EF21: the sum of what the workers track
  std::vector<double> tracked_sum;    // and the sum that each of them keeps
  std::vector<int> compressed_units;  // number of compressed units in each step of rank 0
  bool keeps = false;                 // whether the method keeps residuals
};

/// One rank of a leg, which also does the optimizer's part.
class Runner {
 public:
  Runner(Worker& worker, const Variant& variant, const Leg& leg, bool guard)
      : worker_(worker),
        replica_(worker.communicator, options_of(variant, leg, guard)),
        traits_(make_one(variant)->traits()),
        nesterov_(variant.nesterov),
        averages_(traits_.result == UpdateRule::momentum) {
    replica_.parameters().state("momentum");
  }

  TestReplica& replica() { return replica_; }

  /// The whole state, as in a run. A momentum that no compressor owns is the optimizer's, and
  /// shared by all ranks.
  std::vector<SavedState> state() {
    std::vector<SavedState> saved = replica_.sync().state();
    std::set<std::string> named;
    for (const SavedState& each : saved) named.insert(each.name);
    for (const Segment& segment : replica_.parameters().segments()) {
      const std::string name = "momentum/" + segment.name;
      if (named.count(name) == 0) {
        saved.push_back({name,
                         FlatParameters::view(replica_.parameters().state("momentum"), segment),
                         Sharing::shared});
      }
    }
    return saved;
  }

  void load(const std::string& directory, int saved_workers) {
    const Stream& stream = replica_.context().stream;
    read_shared(directory, stream, state(), true);
    read_own(directory, stream, state(), {worker_.rank, replica_.sync().summands()}, saved_workers);
  }
  void save(const std::string& directory) {
    const Stream& stream = replica_.context().stream;
    if (worker_.rank == 0) write_state(stream, shared_file(directory), state(), Sharing::shared);
    write_state(stream, rank_file(directory, worker_.rank), state(), Sharing::per_rank);
  }

  void step(int64_t step, Ledger& ledger) {
    const int workers = replica_.sync().summands();
    const auto share = [workers](int rank, int64_t at, int segment, int64_t i) {
      return noise(rank, at, segment, i) / static_cast<float>(workers);
    };
    replica_.step(step, share);
    FlatParameters& parameters = replica_.parameters();
    size_t at = 0;
    for (const Segment& segment : parameters.segments()) {
      const UpdateRule rule = replica_.sync().rules()[static_cast<size_t>(segment.id)];
      const float* g = parameters.grad().data<float>() + segment.offset;
      float* m = parameters.state("momentum").data<float>() + segment.offset;
      for (int64_t i = 0; i < segment.numel; ++i, ++at) {
        const float moved = update(rule, g[i], m[i]);
        if (worker_.rank != 0) continue;
        ledger.moved[at] += static_cast<double>(moved);
        for (int rank = 0; rank < workers; ++rank)
          ledger.given[at] += static_cast<double>(share(rank, step, segment.id, i));
      }
    }
    if (worker_.rank != 0) return;
    ledger.compressed_units.push_back(replica_.sync().compressed_units());
  }

  /// For each segment, whether it is compressed.
  const int64_t* engaged() {
    for (const SavedState& saved : replica_.sync().state())
      if (saved.name == "engaged") return saved.tensor.data<int64_t>();
    throw Error("nothing is ever compressed");
  }
  /// Adds the updates that this rank's state will make later, and what it tracks.
  void owe(Ledger& ledger) {
    std::map<std::string, size_t> begins;
    std::set<std::string> dense;  // dense segments, whose kept state moves nothing
    size_t at = 0;
    for (const Segment& segment : replica_.parameters().segments()) {
      begins[segment.name] = at;
      at += static_cast<size_t>(segment.numel);
      if (engaged()[segment.id] == 0) dense.insert(segment.name);
    }
    for (const SavedState& saved : state()) {
      const TensorPart part = part_of_name(saved.name).value_or(TensorPart{saved.name});
      const std::string kind = part.whole.substr(0, part.whole.find('/'));
      const std::string segment = part.whole.substr(std::min(kind.size() + 1, part.whole.size()));
      double weight = 1.0;
      std::vector<double>* into = &ledger.owed;
      if (kind == "tracked") {
        into = &ledger.tracked;
      } else if (kind == "tracked_sum") {
        if (worker_.rank != 0) continue;  // equal on all ranks
        into = &ledger.tracked_sum;
      } else if (kind == "momentum") {
        const bool own = saved.on_resize == OnResize::redistribute_sum;
        if (!own && worker_.rank != 0) continue;  // equal on all ranks
        weight = weight_of_momentum(own);
      } else if (kind == "residual" || kind == "owner_residual") {
        ledger.keeps = true;
        if (dense.count(segment) > 0) continue;
        weight = traits_.result == UpdateRule::update ? 1.0 : 1.0 / (1.0 - kMomentum);
      } else {
        continue;
      }
      const size_t begin = begins.at(segment) + static_cast<size_t>(part.begin);
      for (int64_t i = 0; i < saved.tensor.numel(); ++i)
        (*into)[begin + static_cast<size_t>(i)] +=
            weight * static_cast<double>(saved.tensor.data<float>()[i]);
    }
  }

 private:
  /// The optimizer's update of a weight for the result `left` of a step.
  float update(UpdateRule rule, float left, float& momentum) const {
    const auto beta = static_cast<float>(kMomentum);
    if (rule == UpdateRule::update) return left;
    if (rule == UpdateRule::momentum) return momentum = left;
    momentum = beta * momentum + (averages_ ? 1.0f - beta : 1.0f) * left;
    return nesterov_ ? left + beta * momentum : momentum;
  }
  /// The sum of all later updates by a momentum of 1.
  double weight_of_momentum(bool own) const {
    const double later = kMomentum / (1.0 - kMomentum);
    return nesterov_ && !own ? kMomentum * later : later;
  }

  Worker& worker_;
  TestReplica replica_;
  const Traits traits_;
  const bool nesterov_, averages_;
};

/// Throws Error if a leg refuses the checkpoint of the leg before it.
Ledger run(const Variant& variant, const Chain& chain) {
  const auto& legs = chain.legs;
  Ledger ledger;
  const TempDir dir;
  int64_t step = 0;
  std::string layout;
  for (size_t leg = 0; leg < legs.size(); ++leg) {
    std::mutex mutex;
    std::string next_layout;
    for (auto* each : {&ledger.owed, &ledger.tracked, &ledger.tracked_sum}) each->clear();
    const std::string from = dir / std::to_string(leg), to = dir / std::to_string(leg + 1);
    std::filesystem::create_directories(to);
    run_workers(legs[leg].workers, {.threads = 1}, [&](Worker& worker) {
      Runner runner(worker, variant, legs[leg], chain.guard);
      const auto numel = static_cast<size_t>(runner.replica().gradients().size());
      if (leg > 0) {
        WISP_CHECK(runner.replica().sync().layout() == layout,
                   "refused: resume with the compression.bucket_bytes of the run");
        runner.load(from, legs[leg - 1].workers);
      }
      if (worker.rank == 0) {
        ledger.given.resize(numel);
        ledger.moved.resize(numel);
      }
      for (int64_t i = 0; i < kStepsOfLeg; ++i) runner.step(step + i, ledger);
      runner.save(to);
      const std::scoped_lock lock(mutex);
      for (auto* each : {&ledger.owed, &ledger.tracked, &ledger.tracked_sum}) each->resize(numel);
      runner.owe(ledger);
      next_layout = runner.replica().sync().layout();
    });
    layout = next_layout;
    step += kStepsOfLeg;
  }
  return ledger;
}

double norm(const std::vector<double>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

/// |gradients - updates made and owed| / |gradients|.
double lost(const Ledger& ledger, const Variant& variant) {
  // the updates by a gradient add up to 1 / (1 - m) times it, or to 1 if the momentum is an average
  const bool averages = make_one(variant)->traits().result == UpdateRule::momentum;
  const double weight = averages ? 1.0 : 1.0 / (1.0 - kMomentum);
  std::vector<double> given, difference;
  for (size_t i = 0; i < ledger.given.size(); ++i) {
    given.push_back(weight * ledger.given[i]);
    difference.push_back(given.back() - ledger.moved[i] - ledger.owed[i]);
  }
  return norm(difference) / norm(given);
}

std::vector<Variant> variants() {
  std::vector<Variant> all = {
      {"dgc", "", true},
      {"topk", "compression.momentum_correction = true\n"},
      {"topk", "compression.momentum_correction = true\n", true},
      {"powersgd", "compression.residual_form = \"local\"\n"},
  };
  for (const std::string& method : shipped_methods())
    if (method != "none") all.push_back({method});
  return all;
}

const std::vector<Chain>& chains() {
  static const std::vector<Chain> all = {
      {{{4}, {2}, {4}, {2}, {4}}},
      {{{4}, {3}, {8}, {5}}},
      {{{2}, {24}, {3}}},
      {{{4}, {2}, {3, 1024, true}}},
      {{{4, 1024}, {4, 0}, {4, 8192}, {4, 1024}}, false},
      {{{4, 1024}, {2, 0}, {3, 8192}, {3, 512}}, false},
      {{{4, 1024}, {2, 0}, {3, 8192}, {3, 512}}},
  };
  return all;
}

TEST(ResumeChain, ConservesWhatMethodsKeep) {
  int kept = 0;
  for (const Variant& variant : variants()) {
    const Ledger undisturbed = run(variant, {{{4}, {4}, {4}}});
    if (!undisturbed.keeps) continue;
    ++kept;
    EXPECT_LT(lost(undisturbed, variant), 1e-5) << variant.method;
    for (size_t chain = 0; chain < chains().size(); ++chain) {
      SCOPED_TRACE(concat("chain ", chain, ", ", variant.method, " ", variant.options,
                          variant.nesterov ? "nesterov" : ""));
      try {
        EXPECT_LT(lost(run(variant, chains()[chain]), variant), 1e-5);
      } catch (const Error& error) {
        // after another cut, a unit may be partly compressed or lack its state
        EXPECT_TRUE(chain == 6 || (chain > 3 && variant.method == "oktopk"));
        EXPECT_NE(std::string(error.what()).find("resume with the "), std::string::npos)
            << error.what();
      }
    }
  }
  EXPECT_GT(kept, 15);
}

TEST(ResumeChain, KeepsTheSumOfWhatEf21Tracks) {
  for (const char* feedback : {"ef21", "ef21_sgdm"}) {
    const Variant variant{"topk", concat("compression.feedback = \"", feedback, "\"\n")};
    for (size_t chain = 0; chain < 4; ++chain) {  // the others cut the model anew
      SCOPED_TRACE(concat("chain ", chain, ", ", feedback));
      const Ledger ledger = run(variant, chains()[chain]);
      ASSERT_GT(norm(ledger.tracked_sum), 0.0);
      std::vector<double> difference;
      for (size_t i = 0; i < ledger.tracked.size(); ++i)
        difference.push_back(ledger.tracked[i] - ledger.tracked_sum[i]);
      EXPECT_LT(norm(difference) / norm(ledger.tracked_sum), 1e-5);
    }
  }
}

/// After a change of the number of workers, a run compresses the units of a run with that number.
TEST(ResumeChain, DecidesAnewWhatGoesDense) {
  int fewer = 0;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.method);
    const Ledger resumed = run(variant, {{{2}, {24}}});
    const Ledger many = run(variant, {{{24}, {24}}});
    for (size_t step = kStepsOfLeg; step < 2 * kStepsOfLeg; ++step)
      EXPECT_EQ(resumed.compressed_units[step], many.compressed_units[step]) << step;
    const int few = resumed.compressed_units[kStepsOfLeg - 1];
    fewer += many.compressed_units.back() < few ? 1 : 0;
  }
  EXPECT_GT(fewer, 5);
}

}  // namespace
}  // namespace wisp
