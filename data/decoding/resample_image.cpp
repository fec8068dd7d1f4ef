#include "data/decoding/resample_image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace {

constexpr int kBits = 22;  // of a weight, after the point: 8 bits of a pixel and 2 spare ones fit

double triangle(double x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}

/// Keys' cubic with a = -1/2.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

/// The scaling of `from` pixels of one axis to `to`.
struct Axis {
  int64_t from, to;
  Filter filter;

  double scale() const { return static_cast<double>(from) / static_cast<double>(to); }
  double stretch() const { return std::max(scale(), 1.0); }  // of the kernel
  double centre(int64_t i) const { return (static_cast<double>(i) + 0.5) * scale(); }
  double reach() const { return (filter == Filter::bilinear ? 1.0 : 2.0) * stretch(); }
  /// The pixels from begin(i) to end(i) make pixel i.
  int64_t begin(int64_t i) const {
    return std::max<int64_t>(0, static_cast<int64_t>(centre(i) - reach() + 0.5));
  }
  int64_t end(int64_t i) const {
    return std::min(from, static_cast<int64_t>(centre(i) + reach() + 0.5));
  }
  double kernel(double x) const { return filter == Filter::bilinear ? triangle(x) : cubic(x); }
};

/// The weights of a range of an axis's pixels: each is the sum of `taps` weighted pixels.
struct Weights {
  int64_t taps = 0;
  std::vector<int64_t> first;   // for each result, its first pixel
  std::vector<int32_t> weight;  // (results, taps)
};

/// The weights of results [begin, end). Pixels are counted from `origin`. Results with fewer taps
/// than others get zeros, and read no pixel that no other result reads.
Weights weights_of(const Axis& axis, int64_t begin, int64_t end, int64_t origin) {
  Weights weights;
  for (int64_t i = begin; i < end; ++i)
    weights.taps = std::max(weights.taps, axis.end(i) - axis.begin(i));
  weights.weight.resize(static_cast<size_t>((end - begin) * weights.taps));
  const int64_t last = axis.end(end - 1) - weights.taps;
  const double shrink = 1.0 / axis.stretch();
  std::vector<double> exact;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = axis.begin(i), first = std::min(from, last);
    exact.clear();
    double sum = 0;
    for (int64_t x = 0; x < axis.end(i) - from; ++x) {
      exact.push_back(axis.kernel((static_cast<double>(x + from) - axis.centre(i) + 0.5) * shrink));
      sum += exact.back();
    }
    int32_t* into = weights.weight.data() + (i - begin) * weights.taps + (from - first);
    for (const double one : exact)
      *into++ = static_cast<int32_t>(one / sum * (1 << kBits) + (one < 0 ? -0.5 : 0.5));
    weights.first.push_back(first - origin);
  }
  return weights;
}

constexpr int32_t kHalf = 1 << (kBits - 1);

/// A sum of weighted pixels, as a pixel.
inline int32_t pixel_of(int32_t sum) { return std::clamp(sum >> kBits, 0, 255); }

WISP_CLONES void widen(const uint8_t* pixels, int64_t count, int32_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = pixels[i];
}

/// Scales a row of `count` RGB pixels. Reads and writes a number behind the last pixel.
WISP_CLONES void scale_columns(const int32_t* row, const int64_t* first, const int32_t* weight,
                               int64_t taps, int64_t count, int32_t* __restrict out) {
  using Four = int32_t __attribute__((vector_size(16)));  // red, green, blue, and one to ignore
  for (int64_t x = 0; x < count; ++x, weight += taps) {
    const int32_t* pixel = row + 3 * first[x];
    Four sum = {kHalf, kHalf, kHalf, kHalf};
    for (int64_t t = 0; t < taps; ++t, pixel += 3) {
      Four four;
      std::memcpy(&four, pixel, sizeof four);
      sum += weight[t] * four;
    }
    std::memcpy(out + 3 * x, &sum, sizeof sum);
  }
  for (int64_t i = 0; i < 3 * count; ++i) out[i] = pixel_of(out[i]);
}

WISP_CLONES void add_row(const int32_t* row, int32_t weight, int64_t count,
                         int32_t* __restrict sum) {
  for (int64_t i = 0; i < count; ++i) sum[i] += weight * row[i];
}

WISP_CLONES void write_pixels(const int32_t* sum, int64_t count, uint8_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(pixel_of(sum[i]));
}

}  // namespace

Filter filter_named(const std::string& name) {
  WISP_CHECK(name == "bilinear" || name == "bicubic", "the filter is '", name,
             "', expected bilinear or bicubic");
  return name == "bilinear" ? Filter::bilinear : Filter::bicubic;
}

Region footprint(const View& view, Filter filter) {
  const Region &window = view.window, &source = view.source;
  const int64_t least = std::min({window.height, window.width, source.height, source.width});
  WISP_CHECK(least >= 1 && Region({0, 0, view.height, view.width}).holds(window),
             "footprint: the view has no pixels, or its window is outside of it");
  const Axis rows{source.height, view.height, filter}, columns{source.width, view.width, filter};
  const int64_t top = rows.begin(window.top), left = columns.begin(window.left);
  return {source.top + top, source.left + left, rows.end(window.bottom() - 1) - top,
          columns.end(window.right() - 1) - left};
}

Tensor resample_image(const Tensor& part, const Region& at, const View& view, Filter filter) {
  WISP_CHECK(part.dtype() == DType::u8 && part.shape() == Shape({at.height, at.width, 3}),
             "resample_image: the picture is ", part.shape(), " ", name_of(part.dtype()),
             ", expected (", at.height, ", ", at.width, ", 3) u8");
  WISP_CHECK(at.holds(footprint(view, filter)),
             "resample_image: the view reads pixels outside of those given");
  const Region &window = view.window, &source = view.source;
  const Weights columns = weights_of({source.width, view.width, filter}, window.left,
                                     window.right(), at.left - source.left);
  const Weights rows = weights_of({source.height, view.height, filter}, window.top, window.bottom(),
                                  at.top - source.top);

  const int64_t read = 3 * at.width, written = 3 * window.width;
  std::vector<int32_t> wide(static_cast<size_t>(read + 1)), sum(static_cast<size_t>(written + 1));
  std::vector<std::vector<int32_t>> ring(static_cast<size_t>(rows.taps), sum);  // scaled rows
  Tensor result({window.height, window.width, 3}, DType::u8);
  int64_t done = 0;  // rows of `part` that were scaled
  for (int64_t y = 0; y < window.height; ++y) {
    const int64_t first = rows.first[static_cast<size_t>(y)];
    for (done = std::max(done, first); done < first + rows.taps; ++done) {
      widen(part.data<uint8_t>() + done * read, read, wide.data());
      scale_columns(wide.data(), columns.first.data(), columns.weight.data(), columns.taps,
                    window.width, ring[static_cast<size_t>(done % rows.taps)].data());
    }
    std::fill(sum.begin(), sum.end(), kHalf);
    for (int64_t t = 0; t < rows.taps; ++t)
      add_row(ring[static_cast<size_t>((first + t) % rows.taps)].data(),
              rows.weight[static_cast<size_t>(y * rows.taps + t)], written, sum.data());
    write_pixels(sum.data(), written, result.data<uint8_t>() + y * written);
  }
  return result;
}

}  // namespace wisp
