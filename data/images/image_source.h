// A base class of data sets that are labelled images in memory: derived classes read the images.
// One thread; examples are for any thread.
#pragma once

#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/images/augment.h"
#include "data/images/image_set.h"

namespace wisp {

/// Normalised images. Training may augment them: random crops of images padded by 4, and flips.
class ImageExamples : public Examples {
 public:
  /// Throws Error like ImageSet::check() and Normalizer.
  ImageExamples(ImageSet set, const Normalization& normalization, DType compute, bool augment);

  int64_t count() const override { return set_.count(); }
  std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override {
    return cut_samples(count(), epoch, deal, set_.name);
  }
  void shape(const Piece& piece, Batch& batch) const override;
  /// A hash of all pixels and labels.
  uint64_t digest() const override;
  std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override;
  Tensor picture(const Batch& batch, int64_t row) const override {
    return normalizer_.picture(batch.inputs[0].rows(row, row + 1));
  }
  std::unique_ptr<Examples> on_device(MemoryPool& pool, const Stream& stream,
                                      int64_t most) const override;

 private:
  const ImageSet set_;
  const Normalizer normalizer_;
  const DType compute_;
  const bool augment_;
};

class ImageSource : public DataSource {
 public:
  /// Binds the keys of all image sets: data.validation, data.augment.
  explicit ImageSource(Config& config);

  Facts facts() const override;
  Splits open(DType compute) const override;
  int64_t held_out() const override { return validation_; }

 protected:
  virtual Shape sample() const = 0;  // (H, W, C)
  virtual Normalization normalization() const = 0;
  virtual int classes() const = 0;
  /// The names of the classes, if there are any.
  virtual std::vector<std::string> names() const { return {}; }
  /// Reads or draws the training or the test set. Throws Error for data that is missing or damaged.
  virtual ImageSet load(Split split) const = 0;

 private:
  int64_t validation_ = 0;
  bool augment_ = true;
};

}  // namespace wisp
