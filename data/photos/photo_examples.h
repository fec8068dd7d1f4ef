// Photos on disk as examples: read, decoded and scaled when a batch needs them. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "data/examples.h"
#include "data/photos/photo_pipeline.h"
#include "data/photos/photo_set.h"

namespace wisp {

struct PhotoUse {
  bool training = false;  // random crops and colours; otherwise the centre
  int64_t most_bad = 0;   // number of damaged photos that are tolerated
  SampleOrder order;      // of training
};

/// A damaged photo, or one that cannot be read, keeps its place in the batch: its pixels are 0, the
/// mean, and its target is -1. Repeated rows of a photo have random changes of their own.
class PhotoExamples final : public Examples {
 public:
  /// `name` is for messages. Throws Error like PhotoPipeline, and for an empty set.
  PhotoExamples(std::string name, std::shared_ptr<const PhotoSet> photos,
                const PhotoOptions& options, const Normalization& normalization, DType compute,
                const PhotoUse& use);

  int64_t count() const override { return photos_->count(); }
  std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override {
    return cut_samples(count(), epoch, deal, name_, use_.order);
  }
  void shape(const Piece& piece, Batch& batch) const override;
  /// Throws Error for more than `most_bad` damaged photos, and for one whose library is missing.
  std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override;
  Tensor picture(const Batch& batch, int64_t row) const override {
    return pipeline_.picture(batch.inputs[0].rows(row, row + 1));
  }
  Origin origin(int64_t photo) const override { return {photos_->name(photo), {}}; }
  /// A hash of the set and of the images' size.
  uint64_t digest() const override;

 private:
  std::string write(const Piece& piece, int64_t key, int64_t photo, std::byte* image) const;

  const std::string name_;
  const std::shared_ptr<const PhotoSet> photos_;
  const PhotoPipeline pipeline_;
  const Shape image_;
  const DType compute_;
  const PhotoUse use_;
  mutable std::mutex mutex_;  // guards bad_
  mutable std::set<int64_t> bad_;
};

}  // namespace wisp
