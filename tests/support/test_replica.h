// A worker whose gradients come from a test instead of a model. For the worker's thread.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "distributed/averaging/gradient_averaging.h"
#include "distributed/launch.h"
#include "tests/support/test_context.h"

namespace wisp {

struct ReplicaOptions {
  std::vector<Shape> shapes = {{300}, {7, 5}, {1}, {64, 8}, {1000}, {33}};
  std::function<std::vector<Method>()> methods;  // called for each worker; empty: no methods
  std::function<int(const Segment&)>
      method_of;  // empty: the first method for all segments, if there is one
  AveragingOptions averaging = {.buckets = {.bucket_bytes = 1024}};
  bool late_compute = false, late_comm = false;
  uint64_t shuffle =
      0;  // not 0: gradients become ready in a random order per rank; 0: in arena order
  bool yields = false;  // the thread yields a random number of times between gradients
  TraceOptions trace;
};

using MakeToy = std::function<std::unique_ptr<Compressor>()>;

/// One method for all segments, without a guard, because toys send whatever they like.
ReplicaOptions all_by(MakeToy make, Scope scope = Scope::layer);

/// The gradient of an element of rank `rank`'s loss, divided by the number of workers.
using GradientOf = std::function<float(int rank, int64_t step, int segment, int64_t i)>;

/// Small integers, many of them zero, different for each rank, step and element.
float small_integers(int rank, int64_t step, int segment, int64_t i);

class TestReplica {
 public:
  TestReplica(Communicator& communicator, const ReplicaOptions& options);

  /// Runs a step up to the result in the gradient arena. `before_ready` runs before a gradient is
  /// written.
  Outcome step(int64_t step, const GradientOf& gradient, double loss = 1.0,
               const std::function<void(const Segment&)>& before_ready = {});
  /// The gradient arena without padding, segment after segment.
  std::vector<float> gradients() const;
  std::vector<float> elements(const Tensor& arena) const;
  /// Statistics of both contexts' pools together.
  MemoryStats memory() const;

  FlatParameters& parameters() { return *parameters_; }
  GradientAveraging& sync() { return *sync_; }
  Trace& trace() { return trace_; }
  Context& context() { return compute_.context; }

 private:
  std::vector<int> order(int64_t step) const;

  const ReplicaOptions options_;
  int rank_;
  TestContext compute_, comm_;
  std::deque<Parameter> declared_;
  std::optional<FlatParameters> parameters_;
  Trace trace_;
  Tensor loss_{{1}, DType::f32};
  std::optional<GradientAveraging> sync_;
};

/// results[rank][step]: gradients() after each step.
using Results = std::vector<std::vector<std::vector<float>>>;
Results run_replicas(int workers, const ReplicaOptions& options, int64_t steps,
                     const GradientOf& gradient = small_integers);

/// The expected result of run_replicas(): sums over workers.
Results sums_over_workers(int workers, const ReplicaOptions& options, int64_t steps,
                          const GradientOf& gradient = small_integers);

}  // namespace wisp
