#include "data/images/resident_images.h"

#include <algorithm>

#include "core/context.h"
#include "core/copy.h"
#include "core/io/input_file.h"
#include "core/loops/parallel.h"
#include "data/images/augment.h"

namespace wisp {
namespace {

constexpr int64_t kAtOnce = int64_t{16} << 20;  // bytes of pinned memory per copy

/// A copy of `x` on the device of `stream`.
Tensor brought(const Tensor& x, MemoryPool& pool, const Stream& stream) {
  Tensor there(x.shape(), x.dtype(), pool, stream.id());
  const int64_t rows = x.shape()[0];
  const int64_t at_once = std::max<int64_t>(1, kAtOnce / (x.bytes() / rows));
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t end = std::min(rows, begin + at_once);
    copy_now(stream, x.rows(begin, end), there.rows(begin, end));
  }
  return there;
}

}  // namespace

/// Makes pixel i of a batch, counted over all its images. An image's first one writes its label.
template <class T>
struct MakePixel {
  PixelFormat<T> format;
  const uint8_t* images;   // (all, H, W, C)
  const int32_t* labels;   // (all)
  const int64_t* samples;  // (N)
  T* inputs;               // (N, H, W, C)
  int32_t* targets;        // (N)
  uint64_t seed;
  int64_t epoch;
  bool augment;

  WISP_HD void operator()(int64_t i) const {
    const int64_t row = i / format.pixels();
    const int64_t pixel = i - row * format.pixels();
    const int64_t y = pixel / format.width;
    const int64_t sample = samples[row];
    const Window window = augment ? random_window({seed, epoch, sample}, kPad) : Window{};
    format.write(format.row(images + sample * format.numel(), window, y), pixel - y * format.width,
                 inputs + i * format.channels);
    if (pixel == 0) targets[row] = labels[sample];
  }
};

ResidentImages::ResidentImages(const Examples& whole, const ImageSet& set, const Tensor& table,
                               bool augment, MemoryPool& pool, const Stream& stream)
    : whole_(whole), augment_(augment) {
  naming(concat(set.name, ": ", set.images.bytes(), " bytes of images to hold"), [&] {
    images_ = brought(set.images, pool, stream);
    labels_ = brought(set.labels, pool, stream);
    table_ = brought(table, pool, stream);
  });
}

void ResidentImages::shape(const Piece& piece, Batch& batch) const {
  batch.samples = batch.samples.fitted({std::ssize(piece.rows)}, DType::i64);
  batch.maker = this;
}

std::string ResidentImages::fill(const Piece& piece, int64_t row, const Batch& batch) const {
  batch.samples.data<int64_t>()[row] = piece.rows[static_cast<size_t>(row)];
  return {};
}

void ResidentImages::make(const Context& context, Batch& batch) const {
  const int64_t rows = batch.samples.numel();
  const Shape shape = images_.shape().with_rows(rows);
  batch.inputs = {context.empty(shape, table_.dtype())};
  batch.targets = context.empty({rows}, DType::i32);
  dispatch_activation(table_.dtype(), "images", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, rows * shape[1] * shape[2],
                 MakePixel<T>{.format = {shape[1], shape[2], shape[3], table_.data<T>()},
                              .images = images_.data<uint8_t>(),
                              .labels = labels_.data<int32_t>(),
                              .samples = batch.samples.data<int64_t>(),
                              .inputs = batch.inputs[0].data<T>(),
                              .targets = batch.targets.data<int32_t>(),
                              .seed = batch.seed,
                              .epoch = batch.epoch,
                              .augment = augment_},
                 shape[3]);
  });
}

}  // namespace wisp
