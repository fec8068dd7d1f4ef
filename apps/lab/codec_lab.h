// A replay of recorded gradients through a compression method as in training, without a model:
// threads as workers, the synchronizer, its rounds, the optimizer's momentum. It lets an
// independent program check any method. Called from one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/io/config.h"
#include "core/tensor/shape.h"

namespace wisp {

struct LabRequest {
  std::vector<std::string> inputs;  // a NumPy file per worker, a row per step
  std::string out;                  // output directory
  std::optional<Shape> shape;       // shape of the layer; default: a row's
  std::string layer;                // keys random numbers; empty: named after the first input
  int64_t steps_per_epoch = 0;      // for schedules and warm-up; 0: all in epoch 0
};

/// Results of a replay: means over steps, with bytes per worker.
struct LabSummary {
  int64_t steps = 0;
  int64_t numel = 0;
  int64_t compressed = 0;  // steps in which the layer was compressed
  double bytes_encoded = 0.0, bytes_sent = 0.0;
  double reduction_sent = 0.0;                // bytes of dense / bytes sent
  double relative_error = 0.0, cosine = 0.0;  // over steps in which they are defined
  int64_t cosines = 0;                        // steps in which the cosine is defined
  // Steps in which some rank's gradient counted as zero, as it was not finite or its norm was above
  // 2^96.
  int64_t nonfinite = 0, too_large = 0;
  std::vector<std::string> remarks;  // remarks of wisp plan
};

/// Replays the inputs. Each row is a worker's gradient of its own mean loss, as a run records it; a
/// lossless method gives the workers' mean. `config` holds keys of a training run; those of
/// optimizer, schedule, clipping and compression have an effect. Weights start at zero. Writes to
/// request.out, and replaces files of these names:
///   mean.npy        a row per step: the method's result for the optimizer
///   NAME_R.npy      rank R's state NAME after the last step, in the shape of the layer or the
///                   unit; NAME.npy if all ranks share it
///   payload_R.bin   rank R's payloads in the last step: for each of them u32 round, u32 outlet
///                   (the destination of an all_to_all, else 0), u64 bytes, little-endian, then
///                   the bytes; empty if that step was dense
///   steps.jsonl     an object per step: bytes by rank as in StepCost, error |mean - true| /
///                   |true| and cosine against the true mean (null where undefined), ranks whose
///                   gradient was not finite or too_large, norms of the per-element states by rank
/// Throws Error for files that do not fit together, and for a configuration that a run would
/// refuse.
LabSummary run_lab(Config config, const LabRequest& request);

}  // namespace wisp
