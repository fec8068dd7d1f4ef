// Data parallelism in f32 for a training loop of one's own. A worker makes one object, which owns
// all that training needs beside model and data, and calls step(). Belongs to its worker's thread.
#pragma once

#include <memory>
#include <vector>

#include "core/backend.h"
#include "core/train/optimizer_recipe.h"
#include "distributed/averaging/gradient_averaging.h"
#include "distributed/launch.h"

namespace wisp {

struct DataParallelOptions {
  /// Compresses gradients; without a compressor all are dense. Vectors are dense if the method's
  /// traits say so. If the method's options have a momentum and weight decay, give both the
  /// optimizer's values: nothing compares them.
  Method method;
  AveragingOptions averaging;
  uint64_t seed = 0;  // of first weights, dropout and methods; the same on all workers
};

class DataParallel {
 public:
  /// Takes the parameters and buffers of a model. The model outlives this object, and `pool`, which
  /// gets all memory, outlives the model. All workers begin with the same weights, because a first
  /// weight depends on seed, parameter's name and index alone. If the pool is a device's, the
  /// workers are threads of one process and share it; throws Error otherwise. Throws Error, too, if
  /// the method does not know its scope or the optimizer cannot use the method's result.
  DataParallel(Worker& worker, MemoryPool& pool, std::vector<Parameter*> parameters,
               std::vector<Buffer*> buffers, const OptimizerRecipe& optimizer,
               DataParallelOptions options = {});
  /// Waits for all work, also after a failure.
  ~DataParallel();

  /// The context of forward passes. Its `step` counts the calls of step().
  Context& context() { return context_; }
  /// Ends a step: backward, during which gradients are exchanged, and the update. `loss` is the
  /// mean over this worker's batch, and the workers' batches have one size. If a worker's loss is
  /// not finite, all skip the step and keep weights and buffers. Rethrows a failure of the
  /// exchange.
  Outcome step(const Variable& loss, double lr, double epoch = 0.0);
  /// Makes the present buffers those that a skipped step goes back to. Each step that is not
  /// skipped does this; call it after writing buffers, as when weights are loaded.
  void keep_buffers();
  /// Cost of the last step.
  const StepCost& cost() const { return sync_->cost(); }
  FlatParameters& parameters() { return parameters_; }

 private:
  Worker& worker_;
  Stream stream_, comm_stream_;
  std::unique_ptr<Backend> backend_, comm_backend_;
  Context context_, comm_;  // of this thread; of the synchronizer's, which encodes
  FlatParameters parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  Tensor kept_;  // the buffers that a skipped step goes back to
  Trace trace_;
  std::unique_ptr<GradientAveraging> sync_;  // last: its thread uses the rest
};

}  // namespace wisp
