// Tests of each gossip method against a scalar model of its paper, and of whether and how fast the
// workers' weights agree.
#include <gtest/gtest.h>

#include <cmath>

#include "compression/code.h"
#include "distributed/gossip/mixing.h"
#include "tests/support/error_of.h"
#include "tests/support/gossip_run.h"

namespace wisp {
namespace {

/// Q(v)_i = v_i (1 + (-1)^(step + i) / 4). The mean over two steps is v: unbiased, omega = 1/16.
double uneven(int64_t step, int64_t i, double v) { return v * ((step + i) % 2 == 0 ? 1.25 : 0.75); }

class UnevenCode final : public Code {
 public:
  UnevenCode() {
    Config config;
    exact_ = CodeRegistry::instance().find("code", "none").make(config, {});
  }
  std::optional<double> variance(const UnitSpec&) const override { return 1.0 / 16.0; }
  Message message(const UnitSpec& spec, const StepInfo& info) const override {
    return exact_->message(spec, info);
  }
  int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const override { return 0; }
  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte*) const override {
    context.stream.submit([source, spec, step = info.step, out = outlet.data] {
      auto* next = reinterpret_cast<float*>(out);
      for (const Field& field : spec.fields) {
        for (int64_t i = 0; i < field.numel; ++i) {
          const int64_t at = field.slices[0].offset + i;
          *next = static_cast<float>(uneven(step, i, source.take(at)));
          source.sent(at, *next++);
        }
      }
    });
  }
  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* scratch) const override {
    exact_->decode(context, payload, weight, add, spec, info, into, scratch);
  }

 private:
  std::unique_ptr<Code> exact_;
};

const Registration<Code, Config&, const CompressorSetup&> uneven_code(
    "uneven", "for tests", [](Config&, const CompressorSetup&) -> std::unique_ptr<Code> {
      return std::make_unique<UnevenCode>();
    });

using Vector = std::vector<double>;  // one value of each worker

/// sum_j W_rj v_j
double mixed(const Mixing& w, int r, const Vector& v) {
  double sum = 0.0;
  for (size_t j = 0; j < v.size(); ++j) sum += w.weight(r, static_cast<int>(j)) * v[j];
  return sum;
}

/// A model of one element: each method's function takes step t of all workers.
struct Model {
  Mixing w;
  int64_t i;
  Vector x = Vector(4, 1.0), y = x, z = x, s = x, d = Vector(4, 0.0);
  double gamma = 1.0;

  double descent(size_t r, int64_t t) const {
    return kRigLr * gossip_gradient(static_cast<int>(r), t, i, x[r]);
  }
  Vector told(int64_t t, const Vector& v) const {
    Vector q = v;
    for (double& value : q) value = uneven(t, i, value);
    return q;
  }
  Vector difference(const Vector& a, const Vector& b) const {
    Vector all(4);
    for (size_t r = 0; r < 4; ++r) all[r] = a[r] - b[r];
    return all;
  }

  void dpsgd(int64_t t) {
    const Vector q = told(t, x);
    for (int r = 0; r < 4; ++r) {
      const auto me = static_cast<size_t>(r);
      const double pull = t == 0 ? 0.0 : mixed(w, r, q) - q[me];
      x[me] += pull - descent(me, t);
    }
  }
  void dcd(int64_t t) {  // between steps, x is the paper's x½
    const Vector q = told(t, difference(x, y));
    for (size_t r = 0; r < 4 && t > 0; ++r) x[r] = y[r] += q[r];
    Vector next(4);
    for (int r = 0; r < 4; ++r)
      next[static_cast<size_t>(r)] = mixed(w, r, x) - descent(static_cast<size_t>(r), t);
    x = next;
  }
  void ecd(int64_t t) {
    const auto n = static_cast<double>(t);
    const Vector q = told(t, z);
    for (size_t j = 0; j < 4 && t > 0; ++j) y[j] = (1.0 - 2.0 / n) * y[j] + 2.0 / n * q[j];
    for (int r = 0; r < 4; ++r) {
      const auto me = static_cast<size_t>(r);
      const double next = mixed(w, r, y) - descent(me, t);
      z[me] = (1.0 - 0.5 * (n + 1.0)) * x[me] + 0.5 * (n + 1.0) * next;
      x[me] = next;
    }
  }
  void choco(int64_t t) {
    const Vector q = told(t, difference(x, y));
    for (size_t r = 0; r < 4 && t > 0; ++r) y[r] += q[r] / (1.0 + 1.0 / 16.0);
    for (int r = 0; r < 4; ++r) {
      const auto me = static_cast<size_t>(r);
      x[me] += gamma * (mixed(w, r, y) - y[me]) - descent(me, t);
    }
  }
};

void expect_model(const WeightsRun& run, void (Model::*step)(int64_t), double gamma = 1.0) {
  const WeightsHistory history = weights_of(run);
  for (int64_t i = 0; i < kNumel; ++i) {
    Model model{Mixing(kGraph, 4), i};
    model.gamma = gamma;
    for (int64_t t = 0; t < run.steps; ++t) {
      (model.*step)(t);
      for (size_t r = 0; r < 4; ++r) {
        // f32 against f64: about 50 roundings of numbers below 8
        ASSERT_NEAR(history[static_cast<size_t>(t)][r][static_cast<size_t>(i)], model.x[r], 2e-5)
            << "step " << t << ", rank " << r << ", element " << i;
      }
    }
    EXPECT_GT(std::abs(model.x[0] - model.x[3]), 1e-3) << "the workers differ";
  }
}

TEST(Gossip, DpsgdFollowsItsPaper) { expect_model(gossip("dpsgd", "uneven"), &Model::dpsgd); }
TEST(Gossip, DcdFollowsItsPaper) { expect_model(gossip("dcd", "uneven"), &Model::dcd); }
TEST(Gossip, EcdFollowsItsPaper) { expect_model(gossip("ecd", "uneven"), &Model::ecd); }
TEST(Gossip, ChocoFollowsItsPaper) {
  expect_model(gossip("choco", "uneven", kGraph, 0.7), &Model::choco, 0.7);
}

double mean_of(const std::vector<std::vector<float>>& weights, size_t i) {
  double sum = 0.0;
  for (const auto& own : weights) sum += own[i];
  return sum / static_cast<double>(weights.size());
}

double distance_of(const std::vector<std::vector<float>>& weights) {
  double sum = 0.0;
  for (const auto& own : weights)
    for (size_t i = 0; i < own.size(); ++i) sum += std::pow(own[i] - mean_of(weights, i), 2);
  return std::sqrt(sum / static_cast<double>(weights.size()));
}

TEST(Gossip, OnTheCompleteGraphEveryStepStartsFromTheMean) {
  const WeightsHistory history = weights_of(gossip("dpsgd", "none", "complete"));
  for (size_t t = 1; t < history.size(); ++t) {
    for (size_t r = 0; r < 4; ++r) {
      for (size_t i = 0; i < kNumel; ++i) {
        const double step =
            gossip_gradient(static_cast<int>(r), 0, static_cast<int64_t>(i), history[t - 1][r][i]);
        EXPECT_NEAR(history[t][r][i], mean_of(history[t - 1], i) - kRigLr * step, 4e-6);
      }
    }
  }
}

TEST(Gossip, WithAnExactCodeAllMethodsAreDpsgd) {
  const WeightsHistory expected = weights_of(gossip("dpsgd", "none"));
  for (const char* method : {"dcd", "ecd", "choco"}) {
    const WeightsHistory history = weights_of(gossip(method, "none"));
    for (size_t t = 0; t < history.size(); ++t)
      for (size_t r = 0; r < 4; ++r)
        for (size_t i = 0; i < kNumel; ++i)
          ASSERT_NEAR(history[t][r][i], expected[t][r][i], 2e-5) << method << ", step " << t;
  }
}

/// A run whose gradients are zero after five steps, so that only the exchange moves the workers.
WeightsRun left_alone(WeightsRun run) {
  run.gradient = [](int rank, int64_t step, int64_t i, double x) {
    return step < 5 ? gossip_gradient(rank, step, i, x) : 0.0;
  };
  return run;
}

TEST(Gossip, KeepsTheMeanOfTheWeights) {
  for (const char* code : {"none", "uneven", "topk"}) {
    for (const char* method : {"dpsgd", "dcd", "choco"}) {
      WeightsRun run = left_alone(gossip(method, code, kGraph, 0.2));
      if (std::string(code) == "topk") run.keys.push_back("compression.ratio=0.5");
      const WeightsHistory history = weights_of(run);
      const size_t first = 5;
      for (size_t t = first; t < history.size(); ++t) {
        for (size_t i = 0; i < kNumel; ++i) {
          // dcd does not send the difference of x½ in full, so the mean may move by the rest
          const double slack =
              std::string(method) == "dcd" ? 0.3 * distance_of(history[first - 1]) : 2e-5;
          ASSERT_NEAR(mean_of(history[t], i), mean_of(history[first - 1], i), slack)
              << method << " with " << code << ", step " << t;
        }
      }
    }
  }
}

TEST(Gossip, AgreesAsFastAsTheSpectralGapSays) {
  for (const std::string graph : {"ring", "complete", kGraph}) {
    const WeightsHistory history = weights_of(left_alone(gossip("dpsgd", "none", graph)));
    const double rate = 1.0 - Mixing(graph, 4).spectral_gap();
    for (size_t t = 6; t < history.size(); ++t)
      EXPECT_LE(distance_of(history[t]), rate * distance_of(history[t - 1]) + 1e-5) << graph;
  }
}

TEST(Gossip, ChocoAgreesThoughItTellsOneElementInFour) {
  WeightsRun run = left_alone(gossip("choco", "topk", "ring", 0.0));  // 0: default consensus step
  run.keys.push_back("compression.ratio=0.25");
  run.steps = 400;
  const WeightsHistory history = weights_of(run);
  EXPECT_LT(distance_of(history.back()), 1e-3 * distance_of(history[4]));
}

/// Runs `method` with random_k, which sends 6 of 8 and 3 of 4 elements. Returns, for each element
/// sent in a step, the change of `known` divided by the difference before that step.
std::vector<double> shares_told(const std::string& method) {
  WeightsRun run = gossip(method, "random_k", "complete");
  run.keys.push_back("compression.ratio=0.75");
  run.steps = 20;
  std::vector<float> weights(kNumel, 1.0f), known = weights;
  std::vector<double> shares;
  run_weights(run, [&](WeightsWorker& worker) {
    if (worker.rank != 1 || worker.step < 0) return;
    const float* now = worker.parameters.state("known").data<float>();
    size_t i = 0;
    for (const Segment& segment : worker.parameters.segments()) {
      for (int64_t k = 0; k < segment.numel; ++k, ++i) {
        const float moved = now[segment.offset + k] - known[i];
        const float difference = weights[i] - known[i];
        if (moved != 0.0f && std::abs(difference) > 1e-2f)
          shares.push_back(static_cast<double>(moved) / difference);
        known[i] = now[segment.offset + k];
      }
    }
    weights = worker.weights();
  });
  return shares;
}

TEST(Gossip, ADrawnSelectionIsScaledWhereTheMeanMattersOnly) {
  for (const auto& [method, share] : {std::pair{"choco", 1.0}, std::pair{"dcd", 4.0 / 3.0}}) {
    const std::vector<double> shares = shares_told(method);
    EXPECT_GT(shares.size(), 10u) << method;
    for (const double each : shares) ASSERT_NEAR(each, share, 1e-4) << method;
  }
}

/// At a consensus step of 0.3, usual when the largest elements are sent, the workers diverge.
TEST(Gossip, ChocoAgreesWithDrawnSelections) {
  for (const char* code : {"random_k", "random_block"}) {
    for (const double step : {0.0, 0.3}) {  // 0: default step
      WeightsRun run = left_alone(gossip("choco", code, "ring", step));
      run.numels = {40, 80};
      run.keys.push_back("compression.ratio=0.1");
      run.steps = 600;
      const WeightsHistory history = weights_of(run);
      const double apart = distance_of(history.back()) / distance_of(history[4]);
      if (step == 0.0) {
        EXPECT_LT(apart, 1e-2) << code;
      } else {
        EXPECT_GT(apart, 10.0) << code;
      }
    }
  }
}

/// If 1 / ratio exceeds the graph's bound the workers would diverge, so dcd refuses it. Without the
/// factor 1 / ratio the workers agree.
TEST(Gossip, DcdTakesDrawnSelectionsThatItsGraphBears) {
  const auto run_of = [](const std::vector<std::string>& keys) {
    WeightsRun run = left_alone(gossip("dcd", "random_k", "ring"));
    run.keys.insert(run.keys.end(), keys.begin(), keys.end());
    run.steps = 400;
    return run;
  };
  for (const auto& keys : {std::vector<std::string>{"compression.ratio=0.875"},
                           {"compression.ratio=0.25", "compression.unbiased=false"}}) {
    const WeightsHistory history = weights_of(run_of(keys));
    EXPECT_LT(distance_of(history.back()), 1e-2 * distance_of(history[4])) << keys[0];
  }
  const std::string error = error_of([&] { weights_of(run_of({"compression.ratio=0.5"})); });
  EXPECT_NE(error.find("gossip.code is random_k: dcd diverges"), std::string::npos) << error;
  EXPECT_NE(error.find("expected more than a share of 0.666667"), std::string::npos) << error;
}

TEST(Gossip, EcdRefusesCodesOfLargeError) {
  for (const char* code : {"topk", "threshold", "block_topk", "random_k", "random_block",
                           "ef_signsgd", "natural", "qsgd", "terngrad", "int4", "fft"}) {
    const std::string error = error_of([&] { weights_of(gossip("ecd", code)); });
    EXPECT_NE(error.find(concat("gossip.code is ", code, ": ecd diverges")), std::string::npos)
        << error;
  }
  for (const char* code : {"none", "fp16", "bf16", "int8"}) {
    WeightsRun run = gossip("ecd", code);
    const WeightsHistory exact = weights_of(gossip("ecd", "none"));
    const WeightsHistory history = weights_of(run);
    EXPECT_NEAR(mean_of(history.back(), 0), mean_of(exact.back(), 0), 0.1) << code;
  }
}

}  // namespace
}  // namespace wisp
