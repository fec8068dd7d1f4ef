// The memory of a process's workers: a pool for each device that they compute on. Any thread.
#pragma once

#include <memory>
#include <vector>

#include "apps/setup/train_options.h"
#include "core/device/storage.h"

namespace wisp {

class WorkerMemory {
 public:
  /// The options outlive this object.
  explicit WorkerMemory(const TrainOptions& options) : options_(options) {
    for (int place = 0; place < options.devices; ++place)
      pools_.push_back(std::make_unique<MemoryPool>(options.target(place)));
  }

  /// The pool of a worker's replica.
  MemoryPool& of(int rank) const { return *pools_[static_cast<size_t>(options_.place(rank))]; }

 private:
  const TrainOptions& options_;
  std::vector<std::unique_ptr<MemoryPool>> pools_;
};

}  // namespace wisp
