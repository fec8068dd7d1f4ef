// A recorder of a run's local gradients as NumPy files, for `wisp codec`. PATH/rank_R/NAME.npy
// holds the gradient of parameter NAME on rank R, before clipping and compression: one row per
// recorded step. Beside it lie steps.npy, with the steps' numbers, and whole.npy
// (whole_file.h). A gradient is that of the rank's own mean loss: N times its share of the mean
// over N workers. Belongs to its worker's thread.
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
  /// Continues at `step`. Changes no file. The replica outlives this object. Throws Error if other
  /// parameters were recorded before.
  GradientRecord(Replica& replica, const RecordOptions& options, const std::string& path,
                 int64_t step);
  ~GradientRecord();
  GradientRecord(const GradientRecord&) = delete;
  GradientRecord& operator=(const GradientRecord&) = delete;

  /// Makes the files, and removes rows of the first step and later. Call before write().
  void open();
  /// Call before a step: keeps the step's gradients if it is one to record.
  void begin(int64_t step);
  /// Call after the step, unless it was skipped: appends the kept gradients to the files.
  void write();

 private:
  struct Layer {
    Shape shape;
    std::string path;
    Tensor gradient;  // in host memory; undefined: not recorded
  };

  /// A file of the record: its path, the shape of a row, and the type.
  struct File {
    std::string path;
    Shape shape;
    DType dtype = DType::f32;
  };

  std::vector<File> files() const;
  void keep(const Segment& segment);
  double norm() const;
  std::vector<float> values(const Layer& layer) const;

  Replica& replica_;
  const int64_t every_;
  std::string steps_path_, whole_path_;
  int64_t rows_ = 0;                             // of steps before the first one
  std::vector<Layer> layers_;                    // by segment
  std::vector<std::unique_ptr<Ranges>> ranges_;  // by segment: its range
  DeviceWords squares_;                          // (segments) f64: sum of squares of each
  int64_t step_ = 0;
  bool due_ = false;
};

}  // namespace wisp
