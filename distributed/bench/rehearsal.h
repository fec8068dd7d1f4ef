// A step of a compression method by N workers in one thread, without a communicator: each round all
// encode, payloads change hands, all decode, on one device. Sums are the communicators' own
// arithmetic. Benchmarks time it, and tests compare it with a paper's scalar model. One thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compression/compressor.h"
#include "core/backend.h"
#include "core/device_words.h"

namespace wisp {

class Rehearsal {
 public:
  using Make = std::function<std::unique_ptr<Compressor>()>;

  /// At most kMostDeviceRanks workers with a unit of `fields` each, and a compressor that `make`
  /// gives. With `fastest` they compute on the build's best backend for `device`, else on the
  /// reference. State is zero. Pointers and tensors are the device's.
  Rehearsal(int workers, std::vector<Field> fields, const Make& make, bool fastest = false,
            Device device = {});

  /// Outlets hold `value` before each encode, as memory does that was used before.
  void stain(std::byte value) { stain_ = value; }

  /// One step from each worker's gradient() to the result in it. Rank and workers of `info` are set
  /// here. Throws Error for a payload that is larger than its message says, or not well-formed.
  void step(StepInfo info);

  int workers() const { return static_cast<int>(workers_.size()); }
  float* gradient(int rank) { return at(rank).unit.gradient.data<float>(); }
  float* weight(int rank) { return at(rank).unit.weight.data<float>(); }
  /// Null, as the squares, where Unit has none for the method.
  float* momentum(int rank) { return at(rank).unit.momentum.data<float>(); }
  float* square(int rank) { return at(rank).unit.square.data<float>(); }
  /// The state that the compressor declared under this name.
  Tensor& state(int rank, const std::string& name);
  Unit& unit(int rank) { return at(rank).unit; }
  Context& context() { return context_; }
  Compressor& compressor(int rank) { return *at(rank).compressor; }

  /// Of the last step: rounds, what `rank` encoded in one (its outlets one after the other), and
  /// the stream's time that its encodes and decodes took.
  int rounds() const { return rounds_; }
  std::vector<std::byte> sent(int rank, int round) const;
  int64_t sent_bytes(int rank, int round) const;
  double encode_ms(int rank) const { return workers_[static_cast<size_t>(rank)].encode_ms; }
  double decode_ms(int rank) const { return workers_[static_cast<size_t>(rank)].decode_ms; }
  int64_t scratch_bytes(int rank) const {
    return workers_[static_cast<size_t>(rank)].scratch.bytes();
  }

 private:
  struct Round {
    std::vector<Tensor> out;  // by outlet
    std::vector<int64_t> used;
    DeviceWords counted;  // the same of a variable message, as kernels write it
    std::vector<Outlet> outlets;
    Tensor sum;
  };
  struct Worker {
    std::unique_ptr<Compressor> compressor;
    State state;
    std::vector<std::string> names;  // of state
    Unit unit;
    Tensor scratch;
    std::deque<Round> rounds;
    double encode_ms = 0.0, decode_ms = 0.0;
  };

  Worker& at(int rank) { return workers_[static_cast<size_t>(rank)]; }
  Round& at(int rank, int round) { return at(rank).rounds[static_cast<size_t>(round)]; }
  void fit(Tensor& memory, int64_t bytes) const;
  void begin(int rank, const StepInfo& info);
  void encode(int rank, const StepInfo& info, int round, const Message& message);
  void reduce(int round, const Message& message);
  void decode(int rank, const StepInfo& info, int round, const std::vector<Message>& messages);

  MemoryPool pool_;
  Stream stream_;
  std::unique_ptr<Backend> backend_;
  Context context_;
  DeviceWords complaint_;  // of a decode
  std::vector<Field> fields_;
  std::deque<Worker> workers_;
  int rounds_ = 0;
  std::byte stain_{0xa5};
};

}  // namespace wisp
