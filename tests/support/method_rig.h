// N workers' units with a compressor each, driven through all rounds of a step by hand, without
// threads: what a scalar model of a paper is compared with. Sums are the communicators' own.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compression/compressor.h"
#include "tests/support/test_context.h"

namespace wisp {

class MethodRig {
 public:
  using Make = std::function<std::unique_ptr<Compressor>()>;

  /// A worker of the same fields for each of `workers`.
  MethodRig(int workers, std::vector<Field> fields, const Make& make);

  /// One step from each worker's gradient() to the result in it. `info` without rank and workers.
  void step(StepInfo info);

  int workers() const { return static_cast<int>(workers_.size()); }
  float* gradient(int rank) { return at(rank).unit.gradient.data<float>(); }
  float* weight(int rank) { return at(rank).unit.weight.data<float>(); }
  float* momentum(int rank) { return at(rank).unit.momentum.data<float>(); }
  float* square(int rank) { return at(rank).unit.square.data<float>(); }
  /// The state that the compressor declared under this name.
  Tensor& state(int rank, const std::string& name);
  Unit& unit(int rank) { return at(rank).unit; }
  Context& context(int rank) { return at(rank).test.context; }
  Compressor& compressor(int rank) { return *at(rank).compressor; }
  /// Bytes that `rank` encoded in `round` of the last step, its outlets one after the other.
  const std::vector<std::byte>& sent(int rank, int round) const;

 private:
  struct Worker {
    TestContext test;
    std::unique_ptr<Compressor> compressor;
    State state;
    std::vector<std::string> names;  // of state
    Unit unit;
    Tensor scratch;
    std::vector<Tensor> out;  // of the round under way, by outlet
    std::vector<int64_t> used;
    std::vector<std::vector<std::byte>> history;  // by round
  };

  Worker& at(int rank) { return workers_[static_cast<size_t>(rank)]; }
  void encode(int rank, const StepInfo& info, int round, const Message& message);
  void decode(int rank, const StepInfo& info, int round, const std::vector<Message>& messages);

  std::vector<Field> fields_;
  std::deque<Worker> workers_;
};

}  // namespace wisp
