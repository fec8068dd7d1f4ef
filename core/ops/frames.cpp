#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/parallel.h"

namespace wisp {
namespace {

/// Where the frames of padded sequences stand when they are packed.
struct Frames {
  const int64_t* lengths;  // (sequences), falling
  int64_t sequences, positions;
  int64_t width;  // elements of a frame

  /// The packed row of a padded one; -1 behind a sequence's end.
  WISP_HD int64_t row(int64_t padded) const {
    const int64_t n = padded / positions, t = padded % positions;
    if (t >= lengths[n]) return -1;
    int64_t before = 0;  // rows of the positions before t
    for (int64_t m = 0; m < sequences; ++m) before += lengths[m] < t ? lengths[m] : t;
    return before + n;
  }
};

template <class T>
WISP_HD inline void deposit_row(T* into, const T* from, int64_t width, bool accumulate) {
#pragma GCC ivdep
  for (int64_t c = 0; c < width; ++c) deposit(into + c, wide(from[c]), accumulate);
}

/// One index per padded row.
template <class T>
struct Pack {
  Frames frames;
  const T* padded;
  T* packed;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const int64_t row = frames.row(i);
    if (row < 0) return;
    deposit_row(packed + row * frames.width, padded + i * frames.width, frames.width, accumulate);
  }
};

/// One index per padded row.
template <class T>
struct Unpack {
  Frames frames;
  const T* packed;
  T* padded;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const int64_t row = frames.row(i);
    T* into = padded + i * frames.width;
    if (row >= 0) {
      deposit_row(into, packed + row * frames.width, frames.width, accumulate);
    } else if (!accumulate) {
      for (int64_t c = 0; c < frames.width; ++c) store(into + c, 0);
    }
  }
};

/// Padded sequences (N, T, …) and their frames, packed (R, …).
struct Layout {
  Tensor lengths;
  Shape padded, packed;

  Frames frames() const {
    const int64_t sequences = padded[0], positions = padded[1];
    return {lengths.data<int64_t>(), sequences, positions,
            padded.numel() / (sequences * positions)};
  }
};

void pack(const Stream& stream, const Layout& layout, const Tensor& padded,
          const GradSlot& packed) {
  const Frames frames = layout.frames();
  dispatch_activation(padded.dtype(), "pack_frames", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, frames.sequences * frames.positions,
                 Pack<T>{frames, padded.data<T>(), packed.into.data<T>(), packed.accumulate},
                 frames.width);
  });
}

void unpack(const Stream& stream, const Layout& layout, const Tensor& packed,
            const GradSlot& padded) {
  const Frames frames = layout.frames();
  dispatch_activation(packed.dtype(), "unpack_frames", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, frames.sequences * frames.positions,
                 Unpack<T>{frames, packed.data<T>(), padded.into.data<T>(), padded.accumulate},
                 frames.width);
  });
}

void check_lengths(const char* op, const Tensor& lengths, int64_t sequences) {
  WISP_CHECK(
      lengths.defined() && lengths.dtype() == DType::i64 && lengths.shape() == Shape({sequences}),
      op, ": lengths of ", sequences, " sequences, expected (N) i64");
}

/// `shape` with other extents in the place of the first `replaced`.
Shape behind(std::vector<int64_t> extents, const Shape& shape, int replaced) {
  for (int i = replaced; i < shape.rank(); ++i) extents.push_back(shape[i]);
  return Shape(std::span<const int64_t>(extents));
}

}  // namespace

Variable pack_frames(const Variable& x, const Tensor& lengths, int64_t rows) {
  Context& context = x.context();
  const Shape& shape = x.shape();
  WISP_CHECK(shape.rank() >= 2 && shape.numel() > 0, "pack_frames: the input is ", shape,
             ", expected (N, T, ...)");
  check_lengths("pack_frames", lengths, shape[0]);
  WISP_CHECK(rows >= 0 && rows <= shape[0] * shape[1], "pack_frames: ", rows, " frames of ", shape);
  const Layout layout{lengths, shape, behind({rows}, shape, 2)};
  const Tensor y = context.empty(layout.packed, x.value().dtype());
  pack(context.stream, layout, x.value(), {y});
  return record("pack_frames", y, {x}, [&context, layout](const Tensor& dy, Inputs& in) {
    unpack(context.stream, layout, dy, in.slot(0));
  });
}

Variable unpack_frames(const Variable& x, const Tensor& lengths, int64_t positions) {
  Context& context = x.context();
  const Shape& shape = x.shape();
  WISP_CHECK(shape.rank() >= 1 && shape.numel() > 0, "unpack_frames: the input is ", shape,
             ", expected (R, ...)");
  const int64_t sequences = lengths.defined() ? lengths.numel() : 0;
  check_lengths("unpack_frames", lengths, sequences);
  WISP_CHECK(shape[0] <= sequences * positions, "unpack_frames: ", shape[0], " frames of ",
             sequences, " sequences of ", positions, " positions");
  const Layout layout{lengths, behind({sequences, positions}, shape, 1), shape};
  const Tensor y = context.empty(layout.padded, x.value().dtype());
  unpack(context.stream, layout, x.value(), {y});
  return record("unpack_frames", y, {x}, [&context, layout](const Tensor& dy, Inputs& in) {
    pack(context.stream, layout, dy, in.slot(0));
  });
}

}  // namespace wisp
