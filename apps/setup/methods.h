// From the configuration's method and policies to compressors and the segments they take.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "apps/setup/train_options.h"
#include "distributed/averaging/gradient_averaging.h"
#include "distributed/synchronizer_recipe.h"

namespace wisp {

/// What compression.method chose: compressors for gradient averaging, or another synchronizer.
struct Methods {
  std::vector<Method> methods;                 // of another synchronizer: for a plan alone
  std::vector<int> method_of;                  // by segment: index into methods, or kDense
  std::function<double(double epoch)> ratio;   // of the sparse methods; empty if there is none
  std::vector<double> phases = {0.0};          // epochs at which the ratio changes, from 0
  std::vector<std::string> remarks;            // of the policy and of methods, for a person
  std::unique_ptr<SynchronizerRecipe> recipe;  // of the other synchronizer; null: averaging
  std::string names;                           // "dgc, topk", "choco, topk"; "none" if all is dense

  /// The synchronizer of one worker. Called once.
  std::unique_ptr<Synchronizer> make(const SynchronizerSite& site, const TrainOptions& options);
};

/// All names that compression.method knows, ascending.
std::vector<std::string> method_names();

/// A method's own keys, with their defaults.
struct BoundMethod {
  std::string summary;
  std::vector<ConfigKey> keys;
};
/// Throws Error listing the known methods if there is no `name`.
BoundMethod bind_method(const std::string& name);

/// Whether some method binds `key`.
bool is_method_key(const std::string& key);

/// Binds compression.method, compression.scope, the policies and each chosen method's own keys. A
/// segment that its method refuses is dense. Throws Error with file:line for an unknown method or
/// scope, for momentum in two homes, and for compression of f64 gradients.
Methods choose_methods(Config& config, const TrainOptions& options,
                       std::span<const Segment> segments);

}  // namespace wisp
