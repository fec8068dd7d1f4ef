// Training examples and the cutting of an epoch into each worker's pieces. It is cut into steps of
// all workers first, so what a step holds does not depend on the number of workers. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/device/stream.h"
#include "core/random.h"

namespace wisp {

/// A part of a data set. Training samples may be held out as the validation split.
enum class Split { train, validation, test };
const char* name_of(Split split);

/// One worker's share of a step. A step is cut into workers · accumulate pieces; piece (micro-batch
/// · workers + rank) belongs to this worker.
struct Deal {
  int64_t batch = 128;  // batch size over all workers: samples, or columns of a text
  int workers = 1;
  int rank = 0;
  int64_t accumulate = 1;  // micro-batches per step
  uint64_t seed = 0;
  bool training = true;  // shuffle, drop an incomplete last step; false: all in order

  int64_t pieces() const { return workers * accumulate; }
  /// Throws Error that names the data unless all pieces have one size.
  void check(const std::string& name) const;
};

/// The input of one forward pass of one worker. For a text, `length` is its number of positions.
struct Piece {
  std::vector<int64_t> rows;  // samples (or as in repeated()), or columns of a text
  int64_t begin = 0;          // text: first position in each column
  int64_t length = 0;
  int64_t stride = 0;  // text: tokens from one column to the next
  int64_t longer = 0;  // text: number of columns, the first ones, with a token more
  int64_t epoch = 0;   // key of random draws, with the seed and the row
  uint64_t seed = 0;
  int64_t count = 0, of_worker = 0, of_step = 0, work = 0;  // see Batch
  bool begins = false;

  SampleKey key(int64_t row) const { return {seed, epoch, row}; }
};

/// The origin of a sample, for people; empty where it is unknown.
struct Origin {
  std::string id, speaker;
};

/// One split of a data set. It does not change once made. Any thread may call.
class Examples {
 public:
  virtual ~Examples() = default;
  /// Number of samples.
  virtual int64_t count() const = 0;
  /// This rank's pieces of an epoch: for each step in turn its micro-batches. Every epoch has the
  /// same number of pieces, and no piece is empty. In training all ranks have the same number,
  /// otherwise some may have one less. Throws Error if there are too few samples for the workers.
  virtual std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const = 0;
  /// Gives the tensors of `batch` the shapes of the piece and reuses their memory if it is large
  /// enough (Tensor::fitted). Their contents are undefined.
  virtual void shape(const Piece& piece, Batch& batch) const = 0;
  /// Writes one row of the piece, and nothing else: threads write rows of one batch at once.
  /// Returns an empty string, or the fault of a damaged sample, whose targets are then -1.
  virtual std::string fill(const Piece& piece, int64_t row, const Batch& batch) const = 0;
  /// A row's first input as a picture for people: (H, W, C) u8, C = 1 or 3. Undefined if none.
  virtual Tensor picture(const Batch&, int64_t /*row*/) const { return {}; }
  virtual Origin origin(int64_t /*sample*/) const { return {}; }
  /// A hash that identifies these samples and their order. By default a hash of their origins.
  virtual uint64_t digest() const;
  /// The same examples in the memory of a device, or null if a device cannot hold them or they have
  /// more bytes than `most`. Its batches hold only sample numbers, from which the device makes the
  /// rest (Batch::maker). The result refers to this object. `stream` is the device's; the copy is
  /// complete on return. Throws Error if the device has too little memory left.
  virtual std::unique_ptr<Examples> on_device(MemoryPool& /*pool*/, const Stream& /*stream*/,
                                              int64_t /*most*/) const {
    return nullptr;
  }
};

/// The splits of a data set. The validation split may be missing.
struct Splits {
  std::unique_ptr<Examples> train, validation, test;
  std::vector<std::string> notices{};  // for people: skipped files

  /// The examples of a split, or null if the split is missing.
  const Examples* of(Split split) const;
};

/// The order of samples in training.
struct SampleOrder {
  int64_t block = 0;    // neighbours that are drawn near each other (block_order); 0: shuffled()
  int64_t repeats = 1;  // rows of each sample in a step (repeated)
};

/// Cuts samples with one target each, of equal weight. `name` is for messages.
std::vector<Piece> cut_samples(int64_t count, int64_t epoch, const Deal& deal,
                               const std::string& name, const SampleOrder& training = {});

}  // namespace wisp
