// A rehearsal: one step of a compression method by N workers in one thread, on one device, without
// a communicator. An ExchangeScheduler decides what comes next, as in training; here all workers do
// it in turn. Sums use the communicators' arithmetic. Benchmarks time it, and tests compare it with
// a paper's scalar model. One thread.
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

  /// At most kMostDeviceRanks workers, each with a unit of `fields` and a compressor from `make`.
  /// With `fastest` they use the build's best backend for `device`, else the reference. State is
  /// zero. Pointers and tensors are in device memory.
  Rehearsal(int workers, std::vector<Field> fields, const Make& make, bool fastest = false,
            Device device = {});

  /// Fills outlets with `value` before each encode, like memory that was used before.
  void stain(std::byte value) { stain_ = value; }

  /// Runs one step, from each worker's gradient() to the result in it. Sets rank, ranks and
  /// summands of `info`. Throws Error for a payload that is larger than its message says, or
  /// malformed.
  void step(StepInfo info);

  int workers() const { return static_cast<int>(workers_.size()); }
  float* gradient(int rank) { return at(rank).unit.gradient.data<float>(); }
  float* weight(int rank) { return at(rank).unit.weight.data<float>(); }
  /// Null if the method's Unit has no momentum; likewise square() and squares.
  float* momentum(int rank) { return at(rank).unit.momentum.data<float>(); }
  float* square(int rank) { return at(rank).unit.square.data<float>(); }
  /// The state that the compressor declared under this name.
  Tensor& state(int rank, const std::string& name);
  Unit& unit(int rank) { return at(rank).unit; }
  Context& context() { return context_; }
  Compressor& compressor(int rank) { return *at(rank).compressor; }

  /// Records of the last step: the number of rounds, the bytes that `rank` encoded in one round
  /// (its outlets one after the other), and the stream's time for its encodes and decodes.
  int rounds() const { return static_cast<int>(workers_.front().messages.size()); }
  std::vector<std::byte> sent(int rank, int round) const;
  int64_t sent_bytes(int rank, int round) const;
  double encode_ms(int rank) const { return workers_[static_cast<size_t>(rank)].encode_ms; }
  double decode_ms(int rank) const { return workers_[static_cast<size_t>(rank)].decode_ms; }
  int64_t scratch_bytes(int rank) const {
    return workers_[static_cast<size_t>(rank)].scratch.bytes();
  }

 private:
  struct Round {
    std::vector<Tensor> out;  // indexed by outlet
    std::vector<int64_t> used;
    DeviceWords counted;  // used bytes of a variable message, written by kernels
    std::vector<Outlet> outlets;
    Tensor sum;
  };
  struct Worker {
    std::unique_ptr<Compressor> compressor;
    State state;
    std::vector<std::string> names;  // names of the state
    Unit unit;
    Tensor scratch;
    StepInfo info;
    std::deque<Round> rounds;
    std::vector<Message> messages;  // indexed by round
    double encode_ms = 0.0, decode_ms = 0.0;
  };

  Worker& at(int rank) { return workers_[static_cast<size_t>(rank)]; }
  Round& at(int rank, int round) { return at(rank).rounds[static_cast<size_t>(round)]; }
  void fit(Tensor& memory, int64_t bytes) const;
  void begin(const StepInfo& info);
  void encode(int rank, int round);
  void reduce(int round);
  void decode(int rank, int round);

  MemoryPool pool_;
  Stream stream_;
  std::unique_ptr<Backend> backend_;
  Context context_;
  DeviceWords complaint_;  // complaint of a decode
  std::vector<Field> fields_;
  std::deque<Worker> workers_;
  std::byte stain_{0xa5};
};

}  // namespace wisp
