#include "data/photos/photo_pipeline.h"

#include "core/base/error.h"

namespace wisp {
namespace {

constexpr uint64_t kFlipIndex = 0x666c6970;  // differs from other draws with the same key

/// How many times smaller the picture may become before it is scaled.
int64_t largest_shrink(const View& view) {
  int64_t shrink = 8;
  while (shrink > 1 &&
         (view.source.height < shrink * view.height || view.source.width < shrink * view.width))
    shrink /= 2;
  return shrink;
}

/// The pixels of a view, and the decoder's complaint.
DecodedImage look(const Photo& photo, const View& view, const PhotoOptions& options) {
  const int64_t shrink = options.shrink_first && photo.can_shrink() ? largest_shrink(view) : 1;
  const View small = shrunk(view, photo.height(), photo.width(), shrink);
  const Region at = footprint(small, options.filter);
  DecodedImage part = photo.decode(at, shrink);
  part.pixels = resample_image(part.pixels, at, small, options.filter);
  return part;
}

}  // namespace

PhotoPipeline::PhotoPipeline(const PhotoOptions& options, const Normalization& normalization,
                             DType compute)
    : options_(options), normalizer_(normalization, compute) {
  WISP_CHECK(normalization.mean.size() == 3, "photos: the normalisation has ",
             normalization.mean.size(), " channels, expected 3");
  evaluation_view(1, 1, options.side, options.size);  // throws for sizes out of range
  random_view(1, 1, options.size, options.crop, {});
  check(options.changes);
  check(options.jitter);
  lighting_noise(options.lighting, {});
}

std::string PhotoPipeline::train(const Photo& photo, const SampleKey& key, std::byte* out) const {
  const View view = random_view(photo.height(), photo.width(), options_.size, options_.crop, key);
  const DecodedImage image = look(photo, view, options_);
  rand_augment(image.pixels, options_.changes, key);
  jitter_colours(image.pixels, options_.jitter, key);
  const bool mirror = options_.flip && key.philox().bits(kFlipIndex) >> 31 != 0;
  const Window window{.mirror = mirror};
  if (options_.lighting > 0) {
    normalizer_.write(image.pixels, window, out, lighting_noise(options_.lighting, key));
  } else {
    normalizer_.write(image.pixels, window, out);
  }
  return image.complaint;
}

std::string PhotoPipeline::evaluate(const Photo& photo, std::byte* out) const {
  const View view = evaluation_view(photo.height(), photo.width(), options_.side, options_.size);
  const DecodedImage image = look(photo, view, options_);
  normalizer_.write(image.pixels, {}, out);
  return image.complaint;
}

}  // namespace wisp
