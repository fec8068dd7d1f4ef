// The setup of a gradient replay, checked before any worker starts and shared by all: options, the
// layer and the request. Workers only read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/lab/codec_lab.h"
#include "apps/setup/methods.h"
#include "apps/setup/train_options.h"
#include "data/npy.h"
#include "distributed/gradient_clip.h"

namespace wisp {

struct LabSetup {
  const LabRequest& request;
  Config config;
  TrainOptions options;
  Parameter layer;
  int64_t steps = 0;
  std::vector<std::string> remarks = {};

  int workers() const { return static_cast<int>(request.inputs.size()); }
  std::string file(const std::string& name) const { return request.out + "/" + name; }
  /// Opens the file that describes the gradient of which a worker's rows are parts; empty if there
  /// is none, or clipping does not need it. Throws Error with the path for a file that does not
  /// fit.
  std::optional<NpyReader> whole_of(int rank) const;
};

/// The whole gradient of a worker's own mean loss, from the file that whole_of() opened.
WholeGradient whole_at(NpyReader& file, int64_t step);

/// Checks as run_lab() does. The request outlives the result.
LabSetup prepare_lab(Config config, const LabRequest& request);

/// The methods that a run would choose for the layer, newly made.
Methods choose_for(Config& config, const TrainOptions& options, const Parameter& layer);

}  // namespace wisp
