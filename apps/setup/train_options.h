// The options of a training run except those of model, data and method. Plain values, bound from a
// Config.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/io/config.h"
#include "core/io/trace.h"
#include "core/tensor/dtype.h"
#include "core/train/ema.h"
#include "core/train/optimizer_options.h"
#include "core/train/schedule.h"
#include "data/examples.h"
#include "distributed/communicator/link.h"
#include "distributed/exchange/cut.h"
#include "distributed/gradient_clip.h"
#include "distributed/launch.h"

namespace wisp {

struct CheckpointOptions {
  int64_t every_steps = 0;   // interval, besides ends of epochs; 0: none
  int64_t every_epochs = 1;  // interval; 0: only the last one
  int64_t keep = 2;          // number of newest ones; 0: all
  bool best = true;          // also keep the best one on the validation split
};

struct RecordOptions {
  int64_t every = 0;         // interval in steps; 0: nothing is recorded
  std::string layers = "*";  // glob of parameter names
  std::string out;           // directory; empty: gradients/ in the run's
};

/// Binds the key `device` and returns the device it names. Throws Error with file:line for a device
/// that this program cannot compute on here.
Device bind_device(Config& config, std::string& device);

struct TrainOptions {
  int workers = 1;  // number of threads or processes that train
  int devices = 1;  // devices of this process: 1, or one per worker
  std::string engine = "auto";
  int threads = 0;
  int comm_threads = 1;
  bool turns = false;
  std::string device = "cpu";
  int device_index = 0;     // the process's first device, among those of its kind
  bool own_device = false;  // each worker has a device to itself
  int64_t seed = 1;
  double timeout_s = 60.0;

  int64_t batch = 128;
  int64_t accumulate = 1;
  int64_t epochs = 30;
  int64_t max_steps = 0;
  int64_t eval_every = 1;
  int64_t eval_batch = 0;  // 0: train.batch, in the same micro-batches
  int64_t log_every = 50;
  bool tensorboard = true;
  bool one_batch = false;
  GpuMath math;
  std::string precision = "f32";
  std::string backend = "auto";
  int loader_threads = 1;
  int64_t nonfinite_max = 10;
  int64_t distance_every = 0;

  OptimizerOptions optimizer;
  LrSchedule schedule;
  EmaOptions ema;
  ClipOptions clip;

  std::string model = "resnet_cifar";
  int64_t classes = 0;  // outputs of the model; 0: the data set's classes
  std::string init;
  bool overlap = true;
  bool guard = true;
  int64_t probe_every = 0;
  BucketOptions buckets;
  LinkSpec link;
  TraceOptions trace;
  CheckpointOptions checkpoint;
  RecordOptions record;
  std::vector<std::string> notices;  // notes for the user on these options

  /// Binds all keys, for the processes of `world`. Throws Error with file:line for a value out of
  /// range.
  static TrainOptions bind(Config& config, const World& world);

  /// The type of activations; parameters and gradients have wide_of() of it.
  DType compute() const;
  /// The index of a worker's device among those of this process, from 0.
  int place(int rank) const { return devices > 1 ? rank : 0; }
  /// The device with that index.
  Device target(int place = 0) const;
  /// `of_model`: for the model's own products, to which `math` applies; false for those of a
  /// method.
  std::unique_ptr<Backend> make_backend(MemoryPool& pool, const Stream& stream,
                                        bool of_model = true) const;
  /// The way in which a split is dealt to a worker.
  Deal deal(Split split, int rank) const;
};

}  // namespace wisp
