// Synchronizers by name, for those that are not gradient averaging: a configuration becomes a
// recipe before anything has memory, and the recipe a synchronizer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compression/policy.h"
#include "core/registry.h"
#include "core/trace.h"
#include "distributed/bucket.h"
#include "distributed/gradient_clip.h"
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
  double timeout_s = 60.0;
};

/// What a run knows before the synchronizer's own keys are bound.
struct SynchronizerSetup {
  int workers = 1;
  std::span<const Segment> segments;
  std::span<const PolicyRule> rules;
  Scope scope = Scope::layer;
  CompressorSetup codes;
  BucketOptions buckets;
  bool guard = true;  // what would send more than exact numbers goes exact
  OwnWeightsOptions step;
};

struct SynchronizerRecipe {
  std::vector<std::string> codes;  // what compresses its messages
  std::vector<std::string> notes;  // what a person should know, a line each
  /// Called once. The site's references outlive the synchronizer.
  std::function<std::unique_ptr<Synchronizer>(const SynchronizerSite&)> make;
};

/// The factory binds the keys of its synchronizer and checks them.
using SynchronizerRegistry = Registry<SynchronizerRecipe, Config&, const SynchronizerSetup&>;
using SynchronizerRegistration =
    Registration<SynchronizerRecipe, Config&, const SynchronizerSetup&>;

}  // namespace wisp
