#include "core/optimizer.h"

#include <gtest/gtest.h>

#include "core/backend.h"
#include "core/random.h"

namespace wisp {
namespace {

/// Two segments, the second without decay; what PyTorch's SGD does to them, one number at a time.
class Fixture {
 public:
  explicit Fixture(SgdOptions options)
      : backend(make_reference_backend(pool, stream.id())),
        context{stream, *backend, pool, DType::f64},
        parameters(context, {&plain, &with_decay}, {}),
        sgd(parameters, options),
        options_(options) {
    for (const Segment& segment : parameters.segments()) {
      for (int64_t i = 0; i < segment.numel; ++i)
        weight(segment, i) = 0.5 - 0.25 * static_cast<double>(i);
    }
  }

  double& weight(const Segment& segment, int64_t i) {
    return parameters.weight().data<double>()[segment.offset + i];
  }
  double& gradient(const Segment& segment, int64_t i) {
    return parameters.grad().data<double>()[segment.offset + i];
  }
  double momentum(const Segment& segment, int64_t i) {
    return parameters.state("momentum").data<double>()[segment.offset + i];
  }

  MemoryPool pool;
  Stream stream = Stream::immediate();
  std::unique_ptr<Backend> backend;
  Context context;
  Parameter with_decay{"weight", {5}, {}, true, {}};
  Parameter plain{"bias", {3}, {}, false, {}};
  FlatParameters parameters;
  Sgd sgd;
  SgdOptions options_;
};

void follows_the_scalar_rule(SgdOptions options) {
  Fixture f(options);
  const std::vector<UpdateRule> rules(2, UpdateRule::gradient);
  std::vector<double> m(8), w;
  for (const Segment& segment : f.parameters.segments()) {
    for (int64_t i = 0; i < segment.numel; ++i) w.push_back(f.weight(segment, i));
  }
  for (uint64_t step = 0; step < 20; ++step) {
    const double lr = 0.1 / (1.0 + static_cast<double>(step));
    size_t at = 0;
    for (const Segment& segment : f.parameters.segments()) {
      for (int64_t i = 0; i < segment.numel; ++i, ++at) {
        const double g = normal(Philox(1, step, 0), at);
        f.gradient(segment, i) = g;
        const double d = g + (segment.decay ? options.weight_decay : 0.0) * w[at];
        m[at] = options.momentum * m[at] + d;
        w[at] -= lr * (options.nesterov ? d + options.momentum * m[at] : m[at]);
      }
    }
    f.sgd.step(f.context, lr, rules);
  }
  size_t at = 0;
  for (const Segment& segment : f.parameters.segments()) {
    for (int64_t i = 0; i < segment.numel; ++i, ++at) {
      EXPECT_DOUBLE_EQ(f.weight(segment, i), w[at]);
      EXPECT_DOUBLE_EQ(f.momentum(segment, i), m[at]);
    }
  }
}

TEST(Sgd, FollowsTheScalarRuleWithMomentumAndDecay) {
  follows_the_scalar_rule({.momentum = 0.9, .weight_decay = 1e-2});
}

TEST(Sgd, FollowsTheScalarRuleWithNesterov) {
  follows_the_scalar_rule({.momentum = 0.8, .nesterov = true, .weight_decay = 1e-2});
}

TEST(Sgd, SubtractsAnUpdateAsItIsAndKeepsTheMomentum) {
  Fixture f({.momentum = 0.9, .weight_decay = 0.1});
  const Segment& decayed =
      f.parameters.segments()[1].decay ? f.parameters.segments()[1] : f.parameters.segments()[0];
  f.gradient(decayed, 2) = 4.0;
  const double before = f.weight(decayed, 2);
  f.sgd.step(f.context, 0.5, std::vector<UpdateRule>(2, UpdateRule::update));
  EXPECT_EQ(f.weight(decayed, 2), before - 2.0);
  EXPECT_EQ(f.momentum(decayed, 2), 0.0);
}

TEST(Sgd, TakesAMomentumInPlaceOfItsOwn) {
  Fixture f({.momentum = 0.9, .weight_decay = 0.1});
  const Segment& decayed =
      f.parameters.segments()[1].decay ? f.parameters.segments()[1] : f.parameters.segments()[0];
  f.gradient(decayed, 0) = 4.0;
  const double before = f.weight(decayed, 0);
  f.sgd.step(f.context, 0.5, std::vector<UpdateRule>(2, UpdateRule::momentum));
  EXPECT_DOUBLE_EQ(f.weight(decayed, 0), before - 0.5 * (4.0 + 0.1 * before));
  EXPECT_EQ(f.momentum(decayed, 0), 4.0);
}

TEST(Sgd, RefusesOptionsOutOfRange) {
  EXPECT_THROW(Fixture({.momentum = 1.0}), Error);
  EXPECT_THROW(Fixture({.momentum = 0.0, .nesterov = true}), Error);
  EXPECT_THROW(Fixture({.weight_decay = -1.0}), Error);
}

}  // namespace
}  // namespace wisp
