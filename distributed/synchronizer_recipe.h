// Synchronizers by name, for those that are not gradient averaging: a configuration becomes a
// recipe before anything has memory, and the recipe a synchronizer.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compression/policy.h"
#include "core/base/registry.h"
#include "core/io/trace.h"
#include "distributed/exchange/cut.h"
#include "distributed/gradient_clip.h"
#include "distributed/method.h"
#include "distributed/synchronizer.h"

namespace wisp {

class Communicator;

/// One worker's side of a run: its two contexts, what it trains, whom it reaches.
struct SynchronizerSite {
  Communicator& communicator;
  Context& compute;
  Context& comm;
  FlatParameters& parameters;
  Trace& trace;
};

struct OwnWeightsOptions {
  ClipOptions clip;  // of each worker's own gradient
  bool overlap = true;
};

/// What a run knows before the synchronizer's own keys are bound.
struct SynchronizerSetup {
  int workers = 1;
  std::span<const Segment> segments;
  std::span<const PolicyRule> rules;
  Scope scope = Scope::layer;
  CompressorSetup codes;
  BucketOptions buckets;
  Device device;
  bool guard = true;  // what would send more than exact numbers goes exact
  int optimizer_arenas = 1;
  OwnWeightsOptions step;
};

/// Whom a worker tells, if not all.
struct Neighbourhood {
  int degree = 0;  // of the worker that has most neighbours
  double spectral_gap = 0.0;
};

struct SynchronizerRecipe {
  std::vector<std::string> notes;  // what a person should know, a line each

  // What a forecast of the exchange is made from.
  std::vector<Method> told;                   // to each neighbour, by code
  std::vector<int> told_of;                   // by segment: index into `told`, or kDense
  std::function<double(double epoch)> ratio;  // of sparse codes; empty if there is none
  std::vector<double> phases = {0.0};         // epochs at which the ratio changes, from 0
  std::optional<Neighbourhood> neighbourhood;
  int64_t period = 1;  // updates from one exchange to the next
  int arenas = 1;      // that travel then: the weights, and more

  /// Called once. The site's references outlive the synchronizer.
  std::function<std::unique_ptr<Synchronizer>(const SynchronizerSite&)> make;
};

/// Those of `keys` that were given something else than their default: "a = 1 (FILE:LINE), b = 2";
/// empty if there is none.
std::string set_keys(const Config& config, std::initializer_list<std::string_view> keys);

/// The factory binds the keys of its synchronizer and checks them.
using SynchronizerRegistry = Registry<SynchronizerRecipe, Config&, const SynchronizerSetup&>;
using SynchronizerRegistration =
    Registration<SynchronizerRecipe, Config&, const SynchronizerSetup&>;

}  // namespace wisp
