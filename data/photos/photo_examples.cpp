#include "data/photos/photo_examples.h"

#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "data/decoding/image_codec.h"

namespace wisp {

PhotoExamples::PhotoExamples(std::string name, std::shared_ptr<const PhotoSet> photos,
                             const PhotoOptions& options, const Normalization& normalization,
                             DType compute, const PhotoUse& use)
    : name_(std::move(name)),
      photos_(std::move(photos)),
      pipeline_(options, normalization, compute),
      image_({options.size, options.size, 3}),
      compute_(compute),
      use_(use) {
  WISP_CHECK(photos_->count() > 0, name_, ": no photos");
}

void PhotoExamples::shape(const Piece& piece, Batch& batch) const {
  const auto rows = std::ssize(piece.rows);
  batch.fit({rows, image_[0], image_[1], image_[2]}, compute_, {rows}, rows);
}

std::string PhotoExamples::fill(const Piece& piece, int64_t row, const Batch& batch) const {
  const int64_t key = piece.rows[static_cast<size_t>(row)], photo = key % count();
  const Tensor image = batch.inputs[0].rows(row, row + 1);
  const std::string fault = write(piece, key, photo, image.raw());
  batch.samples.data<int64_t>()[row] = key;
  batch.targets.data<int32_t>()[row] = fault.empty() ? photos_->label(photo) : -1;
  if (fault.empty()) return {};
  std::memset(image.raw(), 0, static_cast<size_t>(image.bytes()));
  std::lock_guard lock(mutex_);
  bad_.insert(photo);
  WISP_CHECK(std::ssize(bad_) <= use_.most_bad, name_, ": ", bad_.size(),
             " photos are damaged, data.max_bad allows ", use_.most_bad, "; the last one: ", fault);
  return fault;
}

/// Returns the fault of a damaged photo.
std::string PhotoExamples::write(const Piece& piece, int64_t key, int64_t photo,
                                 std::byte* image) const {
  std::string fault;
  try {
    std::string buffer;
    const Photo decoder(photos_->bytes(photo, buffer));
    fault = use_.training ? pipeline_.train(decoder, piece.key(key), image)
                          : pipeline_.evaluate(decoder, image);
  } catch (const MissingLibrary& error) {
    throw Error(concat(photos_->folder(), "/", photos_->name(photo), ": ", error.what()));
  } catch (const Error& error) {
    fault = error.what();
  }
  return fault.empty() ? fault : concat(photos_->folder(), "/", photos_->name(photo), ": ", fault);
}

uint64_t PhotoExamples::digest() const {
  return hash_number(photos_->digest(), hash_text(image_.str()));
}

}  // namespace wisp
