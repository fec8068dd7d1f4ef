// The choice of compressors from the configuration's method and policies, and of the segments that
// each one takes. Any thread.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "apps/setup/train_options.h"
#include "distributed/averaging/gradient_averaging.h"
#include "distributed/synchronizer_recipe.h"

namespace wisp {

/// The choice of compression.method: compressors for gradient averaging, or another synchronizer.
struct Methods {
  std::vector<Method> methods;                 // for averaging; with a recipe, for a plan only
  std::vector<int> method_of;                  // by segment: index into methods, or kDense
  std::function<double(double epoch)> ratio;   // ratio of sparse methods; empty if none
  std::vector<double> phases = {0.0};          // epochs at which the ratio changes, from 0
  std::vector<std::string> remarks;            // notes for the user on policies and methods
  std::unique_ptr<SynchronizerRecipe> recipe;  // recipe of another synchronizer; null: averaging
  std::string names;                           // "dgc, topk", "choco, topk"; "none" if all is dense

  /// Makes the synchronizer of one worker. Moves the methods out, so call it once.
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
/// scope, for a momentum or weight decay that both method and optimizer would apply, and for
/// compression of f64 gradients.
Methods choose_methods(Config& config, const TrainOptions& options,
                       std::span<const Segment> segments);

}  // namespace wisp
