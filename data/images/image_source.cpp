#include "data/images/image_source.h"

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/io/checksum.h"
#include "data/absent_classes.h"
#include "data/images/holdout.h"
#include "data/images/resident_images.h"

namespace wisp {

ImageExamples::ImageExamples(ImageSet set, const Normalization& normalization, DType compute,
                             bool augment)
    : set_(std::move(set)),
      normalizer_(normalization, compute),
      compute_(compute),
      augment_(augment) {
  set_.check();
}

void ImageExamples::shape(const Piece& piece, Batch& batch) const {
  const auto rows = static_cast<int64_t>(piece.rows.size());
  batch.fit(set_.images.shape().with_rows(rows), compute_, {rows}, rows);
}

std::string ImageExamples::fill(const Piece& piece, int64_t row, const Batch& batch) const {
  const int64_t sample = piece.rows[static_cast<size_t>(row)];
  const Window window = augment_ ? random_window(piece.key(sample), kPad) : Window{};
  normalizer_.write(set_.image(sample), window, batch.inputs[0].rows(row, row + 1).raw());
  batch.targets.data<int32_t>()[row] = set_.labels.data<int32_t>()[sample];
  batch.samples.data<int64_t>()[row] = sample;
  return {};
}

uint64_t ImageExamples::digest() const {
  uint64_t hash = hash_text(set_.images.shape().str());
  for (const Tensor* part : {&set_.images, &set_.labels})
    hash = hash_number(crc32c(part->raw(), static_cast<size_t>(part->bytes())), hash);
  return hash;
}

std::unique_ptr<Examples> ImageExamples::on_device(MemoryPool& pool, const Stream& stream,
                                                   int64_t most) const {
  if (set_.images.bytes() > most) return nullptr;
  return std::make_unique<ResidentImages>(*this, set_, normalizer_.table(), augment_, pool, stream);
}

ImageSource::ImageSource(Config& config) {
  config.bind("data.augment", augment_, "random crop of the image padded by 4, random flip");
  config.bind_least("data.validation", validation_, 0, kHoldOutMeaning);
}

Facts ImageSource::facts() const {
  return {.inputs = {{.name = "input", .sample = sample(), .normalization = normalization()}},
          .classes = classes(),
          .names = names()};
}

Splits ImageSource::open(DType compute) const {
  const auto examples = [&](ImageSet set, bool augment) {
    return std::make_unique<ImageExamples>(std::move(set), normalization(), compute, augment);
  };
  Splits splits;
  ImageSet train = load(Split::train);
  if (validation_ > 0) {
    WISP_CHECK(validation_ < train.count(), train.name, ": data.validation is ", validation_,
               " of ", train.count(), " training samples, expected fewer");
    HeldOut parts = hold_out(train, validation_);
    train = std::move(parts.train);
    splits.validation = examples(std::move(parts.validation), false);
  }
  train.check();
  std::vector<bool> seen(static_cast<size_t>(train.classes));
  for (int64_t i = 0; i < train.count(); ++i)
    seen[static_cast<size_t>(train.labels.data<int32_t>()[i])] = true;
  note_absent(splits.notices, train.name, "classes", "training image", seen, names());
  splits.train = examples(std::move(train), augment_);
  splits.test = examples(load(Split::test), false);
  return splits;
}

}  // namespace wisp
