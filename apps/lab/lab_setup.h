// The setup of a gradient replay, checked before any worker starts and shared by all: options, the
// layer and the request. Workers only read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/lab/codec_lab.h"
#include "apps/setup/methods.h"
#include "apps/setup/recorded_whole.h"
#include "apps/setup/train_options.h"

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
  /// The file that describes the gradient of which a worker's rows are parts; empty unless clipping
  /// needs it.
  std::optional<RecordedWhole> whole_of(int rank) const;
};

/// Checks as run_lab() does. The request outlives the result.
LabSetup prepare_lab(Config config, const LabRequest& request);

/// The methods that a run would choose for the layer, newly made.
Methods choose_for(Config& config, const TrainOptions& options, const Parameter& layer);

}  // namespace wisp
