// Synchronizers by name, except gradient averaging. A configuration becomes a recipe before
// anything has memory, and the recipe makes a synchronizer. Used by the thread that sets up a run.
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

/// One worker's side of a run: its communicator, contexts, parameters and trace.
struct SynchronizerSite {
  Communicator& communicator;
  Context& compute;
  Context& comm;
  FlatParameters& parameters;
  Trace& trace;
};

struct OwnWeightsOptions {
  ClipOptions clip;  // clipping of each worker's own gradient
  bool overlap = true;
};

/// Facts about a run that are known before the synchronizer's own keys are bound.
struct SynchronizerSetup {
  int workers = 1;
  std::span<const Segment> segments;
  std::span<const PolicyRule> rules;
  Scope scope = Scope::layer;
  CompressorSetup codes;
  BucketOptions buckets;
  Device device;
  bool guard = true;  // send exact numbers where the code would send more
  int optimizer_arenas = 1;
  OwnWeightsOptions step;
};

/// The neighbourhood of a worker that does not tell all others.
struct Neighbourhood {
  int degree = 0;  // largest number of neighbours of a worker
  double spectral_gap = 0.0;
};

struct SynchronizerRecipe {
  std::vector<std::string> notes;  // notes for the user, a line each

  // Inputs for a forecast of the exchange.
  std::vector<Method> told;                   // codes whose messages go to each neighbour
  std::vector<int> told_of;                   // indexed by segment: index into `told`, or kDense
  std::function<double(double epoch)> ratio;  // kept / total for sparse codes; empty if there are
                                              // none
  std::vector<double> phases = {0.0};         // epochs at which the ratio changes, from 0
  std::optional<Neighbourhood> neighbourhood;
  int64_t period = 1;  // updates from one exchange to the next
  int arenas = 1;      // arenas that travel in an exchange: the weights, and more

  /// Makes the synchronizer; called once. The site's references outlive it.
  std::function<std::unique_ptr<Synchronizer>(const SynchronizerSite&)> make;
};

/// The `keys` whose values differ from their defaults: "a = 1 (FILE:LINE), b = 2"; empty if there
/// are none.
std::string set_keys(const Config& config, std::initializer_list<std::string_view> keys);

/// The factory binds and checks the keys of its synchronizer.
using SynchronizerRegistry = Registry<SynchronizerRecipe, Config&, const SynchronizerSetup&>;
using SynchronizerRegistration =
    Registration<SynchronizerRecipe, Config&, const SynchronizerSetup&>;

}  // namespace wisp
