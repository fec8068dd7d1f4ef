#include "compression/field_reduce.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "core/tensor/tensor.h"

namespace wisp {
namespace {

struct Sum {
  using Value = double;
  const float* x;
  double identity() const { return 0.0; }
  double map(int64_t i) const { return x[i]; }
  double combine(double a, double b) const { return a + b; }
};

/// Fields whose slices have a gap before each.
std::vector<Field> fields_of(const std::vector<std::vector<int64_t>>& sizes) {
  std::vector<Field> fields;
  int64_t offset = 0;
  for (const std::vector<int64_t>& of_field : sizes) {
    Field field;
    for (const int64_t numel : of_field) {
      field.slices.push_back({offset += 3, numel});
      field.numel += numel;
      offset += numel;
    }
    fields.push_back(field);
  }
  return fields;
}

std::vector<float> numbers(const std::vector<Field>& fields) {
  const Slice& last = fields.back().slices.back();
  std::vector<float> x(static_cast<size_t>(last.offset + last.numel));
  const Philox random(1, 2, 3);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(random.below(i, 1u << 30)) * 0x1p-30f - 0.3f;
  return x;
}

struct Put {
  double* sum;
  int64_t* numel;
  void operator()(int64_t f, int64_t of_field, double total) const {
    sum[f] = total;
    numel[f] = of_field;
  }
};

/// Expects each field's sum to have the bits of its slices' own sums, added in their order.
void expect_sums(const std::vector<Field>& fields) {
  const std::vector<float> x = numbers(fields);
  const Stream stream = Stream::immediate();
  const std::span<const Field> of(fields);
  const Tensor scratch({layout_bytes<FieldPartials<double>>(of)}, DType::u8);
  std::vector<double> sum(fields.size(), -1.0);
  std::vector<int64_t> numel(fields.size());
  reduce_fields(stream, of, Sum{x.data()}, lay_out<FieldPartials<double>>(scratch.raw(), of),
                Put{sum.data(), numel.data()});
  for (size_t f = 0; f < fields.size(); ++f) {
    double expected = 0.0;
    for (const Slice& slice : fields[f].slices) {
      double own = 0.0;
      parallel_reduce(stream, slice.numel, Sum{x.data() + slice.offset}, &own);
      expected = &slice == fields[f].slices.data() ? own : expected + own;
    }
    EXPECT_EQ(sum[f], expected) << "field " << f;
    EXPECT_EQ(numel[f], fields[f].numel) << "field " << f;
  }
}

TEST(FieldReduce, HasTheBitsOfEachSlicesOwnReduction) {
  expect_sums(fields_of({{1}, {4096}, {4097, 1, 15}, {17, 100000}, {5'000'000, 3}}));
}

TEST(FieldReduce, TakesMoreFieldsAndSlicesThanATableHolds) {
  expect_sums(fields_of(std::vector<std::vector<int64_t>>(300, {5000, 7})));
  expect_sums(fields_of({std::vector<int64_t>(300, 40), {9}}));
}

TEST(FieldReduce, GoesOverWhatStandsForASlice) {
  const std::vector<Field> fields = fields_of({{10, 20}, {30}});
  const auto pairs = [first = int64_t{0}](const Slice& slice) mutable {
    const Slice items{first, slice.numel / 2};
    first += items.numel;
    return items;
  };
  std::vector<float> x(30);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  Cursor measure(nullptr);
  static_cast<void>(FieldPartials<double>(measure, fields, pairs));
  const Tensor scratch({measure.bytes()}, DType::u8);
  Cursor cursor(scratch.raw());
  const FieldPartials<double> partials(cursor, fields, pairs);
  double sum[2];
  int64_t numel[2];
  reduce_fields(Stream::immediate(), fields, Sum{x.data()}, partials, Put{sum, numel}, pairs);
  EXPECT_EQ(sum[0], 105.0);
  EXPECT_EQ(sum[1], 330.0);
  EXPECT_EQ(numel[0], 30);  // number of the field's elements
}

}  // namespace
}  // namespace wisp
