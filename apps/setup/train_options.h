// The options of a training beside those of model, data and method: plain values, bound from a
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
  int64_t every_steps = 0;   // beside those at the ends of epochs; 0: none
  int64_t every_epochs = 1;  // 0: none but the last
  int64_t keep = 2;          // newest; 0: all
  bool best = true;          // keeps the one that did best on the validation split
};

struct RecordOptions {
  int64_t every = 0;         // steps; 0: nothing is recorded
  std::string layers = "*";  // glob of parameters' names
  std::string out;           // directory; empty: gradients in the run's
};

/// Binds the key `device` and gives the device that it names. Throws Error with file:line for one
/// that this program, on this machine, cannot compute on.
Device bind_device(Config& config, std::string& device);

struct TrainOptions {
  int workers = 1;  // as many as processes, if there are several
  int devices = 1;  // of this process: 1, or one for each worker
  std::string engine = "auto";
  int threads = 0;
  int comm_threads = 1;
  bool turns = false;
  std::string device = "cpu";
  int device_index = 0;     // of this process's first device, among those of its kind
  bool own_device = false;  // of each worker: no other one takes it
  int64_t seed = 1;
  double timeout_s = 60.0;

  int64_t batch = 128;
  int64_t accumulate = 1;
  int64_t epochs = 30;
  int64_t max_steps = 0;
  int64_t eval_every = 1;
  int64_t eval_batch = 0;  // 0: batch, in the same micro-batches
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
  std::string clip_scope = "model";
  std::string clip_where = "auto";

  std::string model = "resnet_cifar";
  int64_t classes = 0;  // of the model's outputs; 0: the data set's
  std::string init;
  bool overlap = true;
  bool guard = true;
  int64_t probe_every = 0;
  BucketOptions buckets;
  LinkSpec link;
  TraceOptions trace;
  CheckpointOptions checkpoint;
  RecordOptions record;
  std::vector<std::string> notices;  // what a person should know of how these came about

  /// Binds all keys, for the processes of `world`. Throws Error with file:line for a value out of
  /// range.
  static TrainOptions bind(Config& config, const World& world);

  /// Of activations; parameters and gradients are wide_of() it.
  DType compute() const;
  /// Which of this process's devices a worker computes on, from 0.
  int place(int rank) const { return devices > 1 ? rank : 0; }
  /// The device at such a place.
  Device target(int place = 0) const;
  /// `of_model`: what `math` is about, which a compression method's products are not.
  std::unique_ptr<Backend> make_backend(MemoryPool& pool, const Stream& stream,
                                        bool of_model = true) const;
  /// How a split is dealt to a worker.
  Deal deal(Split split, int rank) const;
};

}  // namespace wisp
