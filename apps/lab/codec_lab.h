// Recorded gradients through a compression method as in training, without a model: threads as
// workers, the synchronizer, its rounds, the optimizer's momentum. Any method can so be checked
// against an independent program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/io/config.h"
#include "core/tensor/shape.h"

namespace wisp {

struct LabRequest {
  std::vector<std::string> inputs;  // a NumPy file for each worker, rows = steps
  std::string out;                  // directory
  std::optional<Shape> shape;       // of the layer; else a row's
  std::string layer;                // its name, a key of random numbers; empty: the first input's
  int64_t steps_per_epoch = 0;      // for schedules and warm-up; 0: all is epoch 0
};

/// Means over steps; bytes per worker.
struct LabSummary {
  int64_t steps = 0;
  int64_t numel = 0;
  int64_t compressed = 0;  // steps in which the layer was
  double bytes_encoded = 0.0, bytes_sent = 0.0;
  double reduction_sent = 0.0;                // what dense would send / sent
  double relative_error = 0.0, cosine = 0.0;  // of the steps in which they are defined
  int64_t cosines = 0;                        // steps in which the cosine is
  // Steps in which some rank's gradient counted as zero: it was not finite, or its norm was above
  // 2^96
  int64_t nonfinite = 0, too_large = 0;
  std::vector<std::string> remarks;  // as wisp plan has them
};

/// Each row is a worker's gradient of its own mean loss, as a run records it; the workers' mean is
/// what a method that loses nothing leaves. `config` holds keys of a training run, of which those
/// of optimizer, schedule, clipping and compression matter; weights start at zero. Writes to
/// request.out, replacing what has these names:
///   mean.npy        a row for each step: what the method left for the optimizer
///   NAME_R.npy      rank R's state NAME after the last step: the layer's, or of the unit's shape;
///                   NAME.npy if all ranks share it
///   payload_R.bin   what rank R encoded in the last step, as PayloadTap has it; empty if that step
///                   was dense
///   steps.jsonl     an object for each step: bytes by rank as in StepCost, error |mean - true| /
///                   |true| and cosine against the true mean (null where undefined), ranks whose
///                   gradient was not finite or too_large, norms of the per-element states by rank
/// Throws Error for files that do not fit together, and as a run would for its configuration.
LabSummary run_lab(Config config, const LabRequest& request);

}  // namespace wisp
