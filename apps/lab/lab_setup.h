// The laboratory's setup, which its workers share: options, the layer and the run's recording,
// checked before any of them starts.
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
  /// The gradients that the rows of a worker's file are parts of, if clipping asks for them.
  std::optional<RecordedWhole> whole_of(int rank) const;
};

/// As run_lab() does. The request outlives the result.
LabSetup prepare_lab(Config config, const LabRequest& request);

/// The method as a run chooses it for the layer, made anew.
Methods choose_for(Config& config, const TrainOptions& options, const Parameter& layer);

}  // namespace wisp
