#include "tests/support/test_replica.h"

#include <numeric>
#include <thread>

#include "core/random.h"

namespace wisp {
namespace {

std::vector<Parameter*> pointers(std::deque<Parameter>& parameters) {
  std::vector<Parameter*> result;
  for (Parameter& parameter : parameters) result.push_back(&parameter);
  return result;
}

std::deque<Parameter> declare(const std::vector<Shape>& shapes) {
  std::deque<Parameter> parameters;
  for (const Shape& shape : shapes) {
    parameters.push_back({concat("p", parameters.size()), shape, {}, shape.rank() > 1, {}});
  }
  return parameters;
}

}  // namespace

ReplicaOptions all_by(MakeToy make, Scope scope) {
  ReplicaOptions options;
  options.methods = [make = std::move(make), scope] {
    std::vector<Method> methods;
    methods.push_back({"toy", make(), scope});
    return methods;
  };
  options.averaging.guard = false;
  return options;
}

float small_integers(int rank, int64_t step, int segment, int64_t i) {
  const Philox random(7, static_cast<uint64_t>(step), static_cast<uint64_t>(segment * 64 + rank));
  const Philox::Block block = random.block(static_cast<uint64_t>(i));
  return block.word[0] % 3 == 0 ? static_cast<float>(block.word[1] % 41) - 20.0f : 0.0f;
}

TestReplica::TestReplica(Communicator& communicator, const ReplicaOptions& options)
    : options_(options),
      rank_(communicator.rank()),
      compute_({.compute = DType::f32, .late = options.late_compute}),
      comm_({.compute = DType::f32, .late = options.late_comm}),
      declared_(declare(options.shapes)),
      parameters_(std::in_place, compute_.context, pointers(declared_), std::vector<Buffer*>{}),
      trace_(rank_, options.trace) {
  std::vector<Method> methods;
  if (options.methods) methods = options.methods();
  std::vector<int> method_of;
  for (const Segment& segment : parameters_->segments()) {
    const int first = methods.empty() ? kDense : 0;
    method_of.push_back(options.method_of ? options.method_of(segment) : first);
  }
  sync_.emplace(communicator, compute_.context, comm_.context, *parameters_, std::move(methods),
                std::move(method_of), options.averaging, trace_);
}

std::vector<int> TestReplica::order(int64_t step) const {
  std::vector<int> ids(parameters_->segments().size());
  std::iota(ids.begin(), ids.end(), 0);
  if (options_.shuffle == 0) return ids;
  const Philox random(options_.shuffle, static_cast<uint64_t>(step), static_cast<uint64_t>(rank_));
  for (size_t i = ids.size(); i > 1; --i)
    std::swap(ids[i - 1], ids[random.below(i, static_cast<uint32_t>(i))]);
  return ids;
}

Outcome TestReplica::step(int64_t step, const GradientOf& gradient, double loss,
                          const std::function<void(const Segment&)>& before_ready) {
  const Stream& stream = compute_.stream;
  sync_->begin({step, static_cast<double>(step), 0.1});
  stream.submit([this, loss] { *loss_.data<float>() = static_cast<float>(loss); });
  sync_->forward_done(loss_);
  const Philox pauses(11, static_cast<uint64_t>(step), static_cast<uint64_t>(rank_));
  for (const int id : order(step)) {
    const Segment& segment = parameters_->segments()[static_cast<size_t>(id)];
    if (before_ready) before_ready(segment);
    stream.submit([this, &segment, &gradient, step] {
      float* values = parameters_->grad().data<float>() + segment.offset;
      for (int64_t i = 0; i < segment.numel; ++i) values[i] = gradient(rank_, step, segment.id, i);
    });
    parameters_->ready(id);
    for (uint32_t i = options_.yields ? pauses.below(static_cast<uint64_t>(id), 20) : 0; i > 0; --i)
      std::this_thread::yield();
  }
  const Outcome outcome = sync_->before_update();
  stream.synchronize();
  sync_->after_update();
  return outcome;
}

std::vector<float> TestReplica::elements(const Tensor& arena) const {
  std::vector<float> result;
  for (const Segment& segment : parameters_->segments()) {
    const float* values = arena.data<float>() + segment.offset;
    result.insert(result.end(), values, values + segment.numel);
  }
  return result;
}

std::vector<float> TestReplica::gradients() const { return elements(parameters_->grad()); }

MemoryStats TestReplica::memory() const {
  MemoryStats both = compute_.pool.stats();
  const MemoryStats comm = comm_.pool.stats();
  both.system_allocations += comm.system_allocations;
  both.used_bytes += comm.used_bytes;
  return both;
}

Results run_replicas(int workers, const ReplicaOptions& options, int64_t steps,
                     const GradientOf& gradient) {
  Results results(static_cast<size_t>(workers));
  run_workers(workers, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    for (int64_t step = 0; step < steps; ++step) {
      replica.step(step, gradient);
      results[static_cast<size_t>(worker.rank)].push_back(replica.gradients());
    }
  });
  return results;
}

Results sums_over_workers(int workers, const ReplicaOptions& options, int64_t steps,
                          const GradientOf& gradient) {
  std::vector<std::vector<float>> of_one;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<float> sums;
    for (size_t segment = 0; segment < options.shapes.size(); ++segment) {
      const int64_t numel = options.shapes[options.shapes.size() - 1 - segment].numel();
      for (int64_t i = 0; i < numel; ++i) {
        float sum = 0.0f;
        for (int rank = 0; rank < workers; ++rank)
          sum += gradient(rank, step, static_cast<int>(segment), i);
        sums.push_back(sum);
      }
    }
    of_one.push_back(std::move(sums));
  }
  return Results(static_cast<size_t>(workers), of_one);
}

}  // namespace wisp
