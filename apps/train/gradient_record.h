// Local gradients of a run as NumPy files, for `wisp codec`: PATH/rank_R/NAME.npy has the
// parameter's gradient of rank R in a row for each recorded step, as it is before clipping and
// compression; beside it steps.npy, the steps' numbers, and whole.npy (RecordedWhole). A gradient
// is that of the rank's own mean loss: N times its share of the mean over N workers. Belongs to its
// worker's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/setup/replica.h"
#include "core/device_words.h"
#include "core/loops/ranges.h"

namespace wisp {

class GradientRecord {
 public:
  /// Goes on at `step`: rows of later steps are removed. The replica outlives this object. Throws
  /// Error if other parameters were recorded before.
  GradientRecord(Replica& replica, const RecordOptions& options, const std::string& path,
                 int64_t step);
  ~GradientRecord();
  GradientRecord(const GradientRecord&) = delete;
  GradientRecord& operator=(const GradientRecord&) = delete;

  /// Before a step; its gradients are kept if it is to be recorded.
  void begin(int64_t step);
  /// After it: adds what was kept to the files. A step that was skipped is not recorded.
  void write();

 private:
  struct Layer {
    Shape shape;
    std::string path;
    Tensor gradient;  // the host's; undefined: not recorded
  };

  void keep(const Segment& segment);
  double norm() const;
  std::vector<float> values(const Layer& layer) const;

  Replica& replica_;
  const int64_t every_;
  std::string steps_path_, whole_path_;
  std::vector<Layer> layers_;                    // by segment
  std::vector<std::unique_ptr<Ranges>> ranges_;  // the same: a segment each
  DeviceWords squares_;                          // (segments) f64: sums of squares
  int64_t step_ = 0;
  bool due_ = false;
};

}  // namespace wisp
