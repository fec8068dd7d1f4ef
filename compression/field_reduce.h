// Reductions over a field: over its slices in their order, so that a field of one slice and the
// same numbers cut in two may differ in the last bits of a sum, never from run to run.
#pragma once

#include <algorithm>
#include <span>

#include "compression/code.h"
#include "core/loops/parallel.h"

namespace wisp {

/// Values of scratch that reduce_field needs for any of these fields.
inline int64_t reduce_field_partials(std::span<const Field> fields) {
  size_t most = 0;
  for (const Field& field : fields) most = std::max(most, field.slices.size());
  return most > 1 ? static_cast<int64_t>(most) : 0;
}

template <class Kernel>
struct CombineSlices {
  const typename Kernel::Value* partial;
  int64_t count;
  Kernel kernel;
  typename Kernel::Value* out;
  WISP_HD void operator()() const {
    typename Kernel::Value total = partial[0];
    for (int64_t s = 1; s < count; ++s) total = kernel.combine(total, partial[s]);
    *out = total;
  }
};

/// *out = combination of map(i) over the field's elements. `kernel_at(offset)` gives the
/// parallel_reduce kernel of the slice at that offset of the arena; its map counts from there.
template <class KernelAt>
void reduce_field(const Stream& stream, const Field& field, const KernelAt& kernel_at,
                  typename decltype(kernel_at(int64_t{}))::Value* partials,
                  typename decltype(kernel_at(int64_t{}))::Value* out) {
  if (field.slices.size() == 1) {
    const Slice& slice = field.slices.front();
    return parallel_reduce(stream, slice.numel, kernel_at(slice.offset), out);
  }
  auto* partial = partials;
  for (const Slice& slice : field.slices)
    parallel_reduce(stream, slice.numel, kernel_at(slice.offset), partial++);
  run_once(stream,
           CombineSlices<decltype(kernel_at(int64_t{}))>{
               partials, static_cast<int64_t>(field.slices.size()), kernel_at(int64_t{}), out});
}

/// The largest magnitude of what a source holds.
struct LargestOf {
  using Value = float;
  Source source;
  int64_t offset;
  WISP_HD float identity() const { return 0.0f; }
  WISP_HD void prefetch(int64_t i) const { source.prefetch(offset + i); }
  WISP_HD float map(int64_t i) const {
    return float_from_bits(float_bits(source.peek(offset + i)) & 0x7fffffffu);
  }
  WISP_HD float combine(float a, float b) const { return a < b ? b : a; }
};

/// The sum of magnitudes, in double.
struct MagnitudesOf {
  using Value = double;
  Source source;
  int64_t offset;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD void prefetch(int64_t i) const { source.prefetch(offset + i); }
  WISP_HD double map(int64_t i) const {
    return static_cast<double>(float_from_bits(float_bits(source.peek(offset + i)) & 0x7fffffffu));
  }
  WISP_HD double combine(double a, double b) const { return a + b; }
};

/// The sum of squares, in double.
struct SquaresOf {
  using Value = double;
  Source source;
  int64_t offset;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD void prefetch(int64_t i) const { source.prefetch(offset + i); }
  WISP_HD double map(int64_t i) const {
    const double value = source.peek(offset + i);
    return value * value;
  }
  WISP_HD double combine(double a, double b) const { return a + b; }
};

}  // namespace wisp
