// Images in a device's memory, as bytes. A batch brings only its sample numbers to the device, and
// a kernel makes the pixels and labels from them, bit for bit as a loader would. Any thread.
#pragma once

#include <string>
#include <vector>

#include "data/examples.h"
#include "data/images/image_set.h"

namespace wisp {

class ResidentImages final : public Examples, public BatchMaker {
 public:
  /// Copies `set`, the images of `whole`, to the device of `stream`. `table` is a Normalizer's.
  /// Throws Error with the set's name if the device has too little memory left.
  ResidentImages(const Examples& whole, const ImageSet& set, const Tensor& table, bool augment,
                 MemoryPool& pool, const Stream& stream);

  int64_t count() const override { return whole_.count(); }
  std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override {
    return whole_.epoch(epoch, deal);
  }
  uint64_t digest() const override { return whole_.digest(); }
  void shape(const Piece& piece, Batch& batch) const override;
  std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override;

  void make(const Context& context, Batch& batch) const override;

 private:
  const Examples& whole_;
  const bool augment_;
  Tensor images_;  // (N, H, W, C) u8
  Tensor labels_;  // (N) i32
  Tensor table_;   // (C, 256)
};

}  // namespace wisp
