// Examples to learn from, and how an epoch of them is cut: into steps of all workers first, then
// into pieces, which are dealt. So what a step holds does not depend on the number of workers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/device/stream.h"

namespace wisp {

enum class Split { train, validation, test };
const char* name_of(Split split);

/// Who gets what of a step: it is cut into workers · accumulate pieces, and piece
/// (micro-batch · workers + rank) is this worker's.
struct Deal {
  int64_t batch = 128;  // of a step of all workers: samples, or columns of a text
  int workers = 1;
  int rank = 0;
  int64_t accumulate = 1;  // micro-batches of a step
  uint64_t seed = 0;
  bool training = true;  // a new order each epoch, what fills no step left out; else all, in order

  int64_t pieces() const { return workers * accumulate; }
  /// Throws Error, naming the data, unless the pieces are of one size.
  void check(const std::string& name) const;
};

/// What one worker computes at once.
struct Piece {
  std::vector<int64_t> rows;  // samples, or columns of a text
  int64_t begin = 0;          // of a text: the first position of each column, how many of them
  int64_t length = 0;
  int64_t stride = 0;  // and tokens from one column to the next
  int64_t longer = 0;  // so many columns, the first ones, have one more
  int64_t epoch = 0;   // with the seed and the row, the key of what is drawn
  uint64_t seed = 0;
  int64_t count = 0, of_worker = 0, of_step = 0, work = 0;  // as in Batch
  bool begins = false;
};

/// Where a sample comes from, for people; empty where it is not known.
struct Origin {
  std::string id, speaker;
};

/// One split of a data set. It does not change once made; any thread may call.
class Examples {
 public:
  virtual ~Examples() = default;
  /// Samples.
  virtual int64_t count() const = 0;
  /// This rank's pieces of an epoch, as many in every epoch; for each step in turn its
  /// micro-batches. None is empty. In training all ranks have as many; otherwise some may have one
  /// less. Throws Error if there are too few samples for the workers.
  virtual std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const = 0;
  /// Makes the tensors of `batch` those of the piece, in the memory they have if it is enough
  /// (Tensor::fitted). What they hold is left open.
  virtual void shape(const Piece& piece, Batch& batch) const = 0;
  /// Writes one row of the piece. Returns what is wrong with a sample that is damaged, whose
  /// targets are then -1; else nothing.
  virtual std::string fill(const Piece& piece, int64_t row, const Batch& batch) const = 0;
  /// What the first input of a row looks like, for people: (H, W, C) u8, C 1 or 3. Undefined if
  /// it is no picture.
  virtual Tensor picture(const Batch&, int64_t /*row*/) const { return {}; }
  virtual Origin origin(int64_t /*sample*/) const { return {}; }
  /// A hash that tells these samples, in their order, from others. Here: of where they come from.
  virtual uint64_t digest() const;
  /// The same examples in the memory of a device: batches are samples alone, of which the device
  /// makes the rest (Batch::maker). Refers to this. `stream` is the device's; all is there when
  /// this returns. Null if a device cannot hold them, or they have more bytes than `most`. Throws
  /// Error if the device has not so much memory left.
  virtual std::unique_ptr<Examples> on_device(MemoryPool& /*pool*/, const Stream& /*stream*/,
                                              int64_t /*most*/) const {
    return nullptr;
  }
};

/// The splits of a data set; there may be no validation split.
struct Splits {
  std::unique_ptr<Examples> train, validation, test;
  std::vector<std::string> notices{};  // what lay beside them and was passed over, for people

  /// Null if there is none.
  const Examples* of(Split split) const;
};

/// 0 to count - 1 in an order of (seed, epoch).
std::vector<int64_t> shuffled(int64_t count, uint64_t seed, int64_t epoch);

/// Cuts samples that weigh the same, one target each. `name` is for messages.
std::vector<Piece> cut_samples(int64_t count, int64_t epoch, const Deal& deal,
                               const std::string& name);

}  // namespace wisp
