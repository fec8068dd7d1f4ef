#include "core/loops/parallel_small_teams.h"
#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/ops/packed_rows.h"

namespace wisp {
namespace {

/// Offsets in images (N, H, W, C), whose columns are positions of sequences, and in packed rows (R,
/// H, C).
struct Layout {
  int64_t heights, positions, channels;

  WISP_HD int64_t of_image(int64_t n, int64_t h, int64_t t) const {
    return ((n * heights + h) * positions + t) * channels;
  }
  WISP_HD int64_t of_row(int64_t row, int64_t h) const { return (row * heights + h) * channels; }
};

/// Copies image columns to packed rows. An item is a column of an image.
template <class T>
struct Pack {
  struct Shared {};
  Layout layout;
  PackedRows rows;
  const T* images;
  T* packed;
  bool accumulate;
  WISP_HD void operator()(const auto& team, int64_t item, Shared&) const {
    const int64_t n = item / layout.positions, t = item % layout.positions;
    if (!rows.has(t, n)) return;
    const int64_t row = rows.row(t, n);
    for (int64_t h = 0; h < layout.heights; ++h) {
      T* into = packed + layout.of_row(row, h);
      const T* from = images + layout.of_image(n, h, t);
      team.each(layout.channels, [&](int64_t c) { deposit(into + c, wide(from[c]), accumulate); });
    }
  }
};

/// Copies packed rows to image columns. An item is a column of an image.
template <class T>
struct Unpack {
  struct Shared {};
  Layout layout;
  PackedRows rows;
  const T* packed;
  T* images;
  bool accumulate;
  WISP_HD void operator()(const auto& team, int64_t item, Shared&) const {
    const int64_t n = item / layout.positions, t = item % layout.positions;
    const bool has = rows.has(t, n);
    for (int64_t h = 0; h < layout.heights; ++h) {
      T* into = images + layout.of_image(n, h, t);
      if (has) {
        const T* from = packed + layout.of_row(rows.row(t, n), h);
        team.each(layout.channels,
                  [&](int64_t c) { deposit(into + c, wide(from[c]), accumulate); });
      } else if (!accumulate) {
        team.each(layout.channels, [&](int64_t c) { store(into + c, 0); });
      }
    }
  }
};

/// The shapes and the row table of both directions.
struct Frames {
  Shape images;  // (N, H, W, C)
  Tensor first;  // table of PackedRows
  Shape packed() const { return {total, images[1], images[3]}; }

  int64_t total;
  PackedRows rows() const { return {first.data<int64_t>(), first.numel() - 1}; }
  Layout layout() const { return {images[1], images[2], images[3]}; }
  int64_t columns() const { return images[0] * images[2]; }
};

Frames frames_of(const char* op, Context& context, const Shape& images,
                 const std::vector<int64_t>& rows) {
  const RnnSpec spec{.rows = rows};
  check_rows(op, rows);
  WISP_CHECK(spec.sequences() <= images[0] && std::ssize(rows) <= images[2], op, ": ",
             spec.sequences(), " sequences of ", rows.size(), " positions beside images of ",
             images);
  return {images, first_rows(context, rows), spec.total_rows()};
}

template <template <class> class Kernel>
void move_frames(const char* op, const Stream& stream, const Frames& frames, const Tensor& from,
                 const GradSlot& to) {
  dispatch_activation(from.dtype(), op, [&]<class T>(T) {
    parallel_small_teams(
        stream, frames.columns(),
        Kernel<T>{frames.layout(), frames.rows(), from.data<T>(), to.into.data<T>(), to.accumulate},
        frames.images[1] * frames.images[3]);
  });
}

}  // namespace

Variable pack_frames(const Variable& x, const std::vector<int64_t>& rows) {
  Context& context = x.context();
  WISP_CHECK(x.shape().rank() == 4 && x.shape().numel() > 0, "pack_frames: the input is ",
             x.shape(), ", expected (N, H, W, C)");
  const Frames frames = frames_of("pack_frames", context, x.shape(), rows);
  const Tensor y = context.empty(frames.packed(), x.value().dtype());
  move_frames<Pack>("pack_frames", context.stream, frames, x.value(), {y});
  return record("pack_frames", y, {x}, [&context, frames](const Tensor& dy, Inputs& in) {
    move_frames<Unpack>("unpack_frames", context.stream, frames, dy, in.slot(0));
  });
}

Variable unpack_frames(const Variable& x, const std::vector<int64_t>& rows, int64_t positions) {
  Context& context = x.context();
  const Shape& shape = x.shape();
  const RnnSpec spec{.rows = rows};
  WISP_CHECK(shape.rank() == 3 && shape.numel() > 0 && shape[0] == spec.total_rows(),
             "unpack_frames: the input is ", shape, ", expected (", spec.total_rows(), ", H, C)");
  const Frames frames =
      frames_of("unpack_frames", context, {spec.sequences(), shape[1], positions, shape[2]}, rows);
  const Tensor y = context.empty(frames.images, x.value().dtype());
  move_frames<Unpack>("unpack_frames", context.stream, frames, x.value(), {y});
  return record("unpack_frames", y, {x}, [&context, frames](const Tensor& dy, Inputs& in) {
    move_frames<Pack>("pack_frames", context.stream, frames, dy, in.slot(0));
  });
}

}  // namespace wisp
