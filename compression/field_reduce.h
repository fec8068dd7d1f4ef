// Reductions over all fields of a unit at once, on the device. The result of a slice has the bits
// of parallel_reduce. A field adds its slices in order, so a different cut of the same numbers may
// change the last bits of a sum; repeated runs never do.
#pragma once

#include <algorithm>
#include <span>

#include "compression/code.h"
#include "compression/cursor.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace field_reduce {

/// The range of a slice's partial results. The first one receives the slice's result.
struct Part {
  int64_t first, count;
};

/// A slice in the first kernel. An item is a block of parallel::reduce_block(numel).
struct SliceRow {
  int64_t first_item;
  int64_t begin, numel;
  int64_t slice;  // index of the slice in the unit
  int64_t partial;

  static int64_t partials(int64_t numel) {
    const int64_t block = parallel::reduce_block(numel);
    return std::max<int64_t>((numel + block - 1) / block, 1);
  }
};

template <class Kernel>
struct ReduceBlocks {
  struct Shared {};
  Kernel kernel;
  Part* part;
  typename Kernel::Value* partial;
  RowTable<SliceRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const SliceRow row = table.row_of(item);
    const int64_t block = parallel::reduce_block(row.numel);
    const int64_t at = item - row.first_item;
    const int64_t begin = at * block;
    const int64_t end = begin + block < row.numel ? begin + block : row.numel;
    const auto value = team.reduce_lanes(row.begin + begin, row.begin + end, kernel);
    team.once([&] {
      partial[row.partial + at] = value;
      if (at == 0) part[row.slice] = {row.partial, (row.numel + block - 1) / block};
    });
  }
};

constexpr int64_t kFew = 64;  // number of partial results up to which one thread combines them

/// A field in the second kernel.
struct FieldRow {
  int64_t first_item;
  int64_t field, numel;
  int64_t slice, slices;  // index of its first slice, number of its slices
};

template <class Kernel, class Finish>
struct CombineSlices {
  struct Shared {};
  using Value = typename Kernel::Value;
  Kernel kernel;
  Finish finish;
  const Part* part;
  Value* partial;
  RowTable<FieldRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const FieldRow& row = table.row[item];
    const Part* of = part + row.slice;
    const auto partials_of = [&](int64_t s) {
      return parallel::Partials<Kernel>{partial + of[s].first, kernel};
    };
    // The team combines many partial results; one thread combines few.
    for (int64_t s = 0; s < row.slices; ++s) {
      if (of[s].count <= kFew) continue;
      const Value value = team.reduce_lanes(0, of[s].count, partials_of(s));
      team.once([&] { partial[of[s].first] = value; });
    }
    team.each(row.slices, [&](int64_t s) {
      if (of[s].count <= kFew)
        partial[of[s].first] = parallel::reduce_lanes(0, of[s].count, partials_of(s));
    });
    team.once([&] {
      Value total = partial[of[0].first];
      for (int64_t s = 1; s < row.slices; ++s) total = kernel.combine(total, partial[of[s].first]);
      finish(row.field, row.numel, total);
    });
  }
};

}  // namespace field_reduce

/// The range to reduce in a slice: all of its elements.
struct EachElement {
  Slice operator()(const Slice& slice) const { return slice; }
};

/// The scratch of a reduction.
template <class Value>
struct FieldPartials {
  field_reduce::Part* part;
  Value* partial;

  template <class Items = EachElement>
  FieldPartials(Cursor& cursor, std::span<const Field> fields, Items items = {}) {
    int64_t slices = 0, partials = 0;
    for (const Field& field : fields) {
      slices += std::ssize(field.slices);
      for (const Slice& slice : field.slices)
        partials += field_reduce::SliceRow::partials(items(slice).numel);
    }
    part = cursor.take<field_reduce::Part>(slices);
    partial = cursor.take<Value>(partials);
  }
};

/// Calls finish(f, numel, value) on the device for each field f. `value` combines kernel.map(i)
/// over the field. The index i runs through items(slice) of each slice in order: arena indices by
/// default. The kernel has the interface of parallel_reduce.
template <class Kernel, class Finish, class Items = EachElement>
void reduce_fields(const Stream& stream, std::span<const Field> fields, const Kernel& kernel,
                   const FieldPartials<typename Kernel::Value>& scratch, const Finish& finish,
                   Items items = {}) {
  using namespace field_reduce;
  const ReduceBlocks<Kernel> reduce{kernel, scratch.part, scratch.partial};
  parallel_rows(stream, reduce, parallel::reduce_block(0), [&](const auto& put) {
    SliceRow row{};
    for (const Field& field : fields) {
      for (const Slice& slice : field.slices) {
        const Slice of = items(slice);
        row.begin = of.offset;
        row.numel = of.numel;
        const int64_t partials = SliceRow::partials(of.numel);
        put(row, partials);
        ++row.slice;
        row.partial += partials;
      }
    }
  });
  const CombineSlices<Kernel, Finish> combine{kernel, finish, scratch.part, scratch.partial};
  parallel_rows(stream, combine, 1, [&](const auto& put) {
    FieldRow row{};
    for (const Field& field : fields) {
      row.numel = field.numel;
      row.slices = std::ssize(field.slices);
      put(row, 1);
      ++row.field;
      row.slice += row.slices;
    }
  });
}

/// The largest magnitude in a source.
struct LargestOf {
  using Value = float;
  Source source;
  WISP_HD float identity() const { return 0.0f; }
  WISP_HD void prefetch(int64_t i) const { source.prefetch(i); }
  WISP_HD float map(int64_t i) const {
    return float_from_bits(float_bits(source.peek(i)) & 0x7fffffffu);
  }
  WISP_HD float combine(float a, float b) const { return a < b ? b : a; }
};

/// The sum of magnitudes, in double.
struct MagnitudesOf {
  using Value = double;
  Source source;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD void prefetch(int64_t i) const { source.prefetch(i); }
  WISP_HD double map(int64_t i) const {
    return static_cast<double>(float_from_bits(float_bits(source.peek(i)) & 0x7fffffffu));
  }
  WISP_HD double combine(double a, double b) const { return a + b; }
};

/// The sum of squares, in double.
struct SquaresOf {
  using Value = double;
  Source source;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD void prefetch(int64_t i) const { source.prefetch(i); }
  WISP_HD double map(int64_t i) const {
    const double value = source.peek(i);
    return value * value;
  }
  WISP_HD double combine(double a, double b) const { return a + b; }
};

}  // namespace wisp
