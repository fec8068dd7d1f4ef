#include "core/loops/select_ranges.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <vector>

#include "core/random.h"

namespace wisp {
namespace {

struct Row : SelectRange {
  int64_t group, offset;
};

struct Above {
  const float* x;
  float threshold;
  int64_t offset;
  int64_t* index;
  int64_t* selected;
  bool left_out;
  WISP_HD bool operator()(int64_t i) const { return x[offset + i] > threshold; }
  WISP_HD void emit(int64_t at, int64_t i) const { index[at] = offset + i; }
  WISP_HD int64_t* count() const { return selected; }
  WISP_HD bool off() const { return left_out; }
};

struct AboveOf {
  const Row* row;
  const float* x;
  int64_t* index;  // each group's positions, from its first range's offset on
  int64_t* selected;
  int64_t left_out;  // number of a group
  WISP_HD Above operator()(int64_t r) const {
    int64_t first = r;
    while (first > 0 && row[first - 1].group == row[r].group) --first;
    return {x,
            0.2f,
            row[r].offset,
            index + row[first].offset,
            selected + row[r].group,
            row[r].group == left_out};
  }
};

TEST(SelectRanges, EqualsAScalarLoopOverEachGroup) {
  const std::vector<std::vector<int64_t>> groups{{5}, {8192, 0, 1, 20'000}, {64},
                                                 {0}, {16'384, 63},         {1, 2, 3}};
  std::vector<Row> rows;
  int64_t chunk = 0, word = 0, offset = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const int64_t begin = chunk;
    const size_t first = rows.size();
    for (const int64_t numel : groups[g]) {
      rows.push_back({{numel, chunk, word, begin, 0}, static_cast<int64_t>(g), offset});
      chunk += SelectRange::chunks(numel);
      word += SelectRange::words(numel);
      offset += numel;
    }
    for (size_t r = first; r < rows.size(); ++r) rows[r].group_end = chunk;
  }
  std::vector<float> x;
  for (int64_t i = 0; i < offset; ++i)
    x.push_back(Philox(1, 2, 3).uniform(static_cast<uint64_t>(i)));
  constexpr int64_t kLeftOut = 2;
  std::vector<int64_t> expected(x.size(), -1), expected_count(groups.size(), 0);
  expected_count[kLeftOut] = 77;
  for (const Row& row : rows) {
    int64_t& count = expected_count[static_cast<size_t>(row.group)];
    const Row* first = &row;
    while (first > rows.data() && first[-1].group == row.group) --first;
    for (int64_t i = 0; i < row.numel && row.group != kLeftOut; ++i) {
      if (x[static_cast<size_t>(row.offset + i)] > 0.2f)
        expected[static_cast<size_t>(first->offset + count++)] = row.offset + i;
    }
  }
  std::vector<int64_t> index(x.size(), -1), count(groups.size(), 77);
  std::vector<int64_t> selected(static_cast<size_t>(chunk));
  std::vector<uint64_t> masks(static_cast<size_t>(word));
  const SelectRanges<Row> ranges{rows.data(), std::ssize(rows), chunk,
                                 offset,      masks.data(),     selected.data()};
  parallel_select_ranges(Stream::immediate(), ranges,
                         AboveOf{rows.data(), x.data(), index.data(), count.data(), kLeftOut});
  EXPECT_EQ(index, expected);
  EXPECT_EQ(count, expected_count);
}

/// Selects elements above the threshold of one range, and counts how often each is asked.
struct SelectAbove {
  const float* x;
  float threshold;
  int* asked;
  int64_t* index;
  int64_t* selected;
  int64_t capacity;
  WISP_HD bool operator()(int64_t i) const {
    ++asked[i];
    return x[i] > threshold;
  }
  WISP_HD void emit(int64_t position, int64_t i) const { index[position] = i; }
  WISP_HD int64_t* count() const { return selected; }
};

/// Selects products above zero, reads `y` only where `x` is not above zero, and counts those
/// visits.
template <class T>
struct ConditionalSelect {
  const T *x, *y;
  T* visits;
  int64_t* index;
  int64_t* selected;
  WISP_HD bool operator()(int64_t i) const {
    if (x[i] > T(0)) return false;
    visits[i] += T(1);
    return x[i] * y[i] > T(0);
  }
  WISP_HD void emit(int64_t position, int64_t i) const { index[position] = i; }
  WISP_HD int64_t* count() const { return selected; }
};

template <class Kernel>
struct Same {
  Kernel kernel;
  WISP_HD Kernel operator()(int64_t) const { return kernel; }
};

/// Selects from [0, n) as one range.
template <class Kernel>
void select_one(int64_t n, const Kernel& kernel) {
  const int64_t chunks = SelectRange::chunks(n);
  const SelectRange row{n, 0, 0, 0, chunks};
  std::vector<int64_t> selected(static_cast<size_t>(chunks));
  std::vector<uint64_t> masks(static_cast<size_t>(SelectRange::words(n)));
  const SelectRanges<SelectRange> ranges{&row, 1, chunks, n, masks.data(), selected.data()};
  parallel_select_ranges(Stream::immediate(), ranges, Same<Kernel>{kernel});
}

/// Sizes around every border: lanes, mask words, chunks, thread grain.
const std::vector<int64_t> kRangeSizes = {0,  1,    15,   17,   63,   64,
                                          65, 4097, 8191, 8192, 8193, 100'003};

TEST(SelectRanges, OfOneRangeAskEachElementOnceAndEmitWithinTheCapacity) {
  const int before = omp_get_max_threads();
  for (const int64_t n : kRangeSizes) {
    std::vector<float> x;
    for (int64_t i = 0; i < n; ++i)
      x.push_back(Philox(1, 2, 3).uniform(static_cast<uint64_t>(i)) - 0.5f);
    for (const float threshold : {-1.0f, 0.0f, 0.45f, 1.0f}) {
      std::vector<int64_t> above;
      for (int64_t i = 0; i < n; ++i) {
        if (x[static_cast<size_t>(i)] > threshold) above.push_back(i);
      }
      const int64_t all = std::ssize(above);
      for (const int64_t capacity : {int64_t{0}, all / 3, all, all + 5}) {
        std::vector<int64_t> expected = above;
        expected.resize(static_cast<size_t>(std::min(capacity, all)));
        expected.resize(x.size() + 1, -1);
        for (const int threads : {1, 2, 3, 4}) {
          omp_set_num_threads(threads);
          std::vector<int64_t> index(x.size() + 1, -1);
          std::vector<int> asked(x.size());
          int64_t count = 0;
          select_one(
              n, SelectAbove{x.data(), threshold, asked.data(), index.data(), &count, capacity});
          EXPECT_EQ(count, all) << n;
          EXPECT_EQ(index, expected) << n << ", " << threads << " threads";
          EXPECT_EQ(asked, std::vector<int>(x.size(), 1)) << n;
        }
      }
    }
  }
  omp_set_num_threads(before);
}

template <class T>
void expect_conditional_selections() {
  for (const int64_t n : kRangeSizes) {
    std::vector<T> x, y, expected_visits;
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < n; ++i) {
      x.push_back(static_cast<T>(i * 37 % 19 - 9));
      y.push_back(static_cast<T>(i * 7 % 11 - 5));
      expected_visits.push_back(x.back() <= 0);
      if (x.back() <= 0 && x.back() * y.back() > 0) expected.push_back(i);
    }
    std::vector<T> visits(x.size());
    std::vector<int64_t> index(expected.size());
    int64_t count = -1;
    select_one(n, ConditionalSelect<T>{x.data(), y.data(), visits.data(), index.data(), &count});
    EXPECT_EQ(count, std::ssize(index)) << n;
    EXPECT_EQ(index, expected) << n;
    EXPECT_EQ(visits, expected_visits) << n;
  }
}

TEST(SelectRanges, MayReadUnderACondition) {
  expect_conditional_selections<float>();
  expect_conditional_selections<double>();
  expect_conditional_selections<int32_t>();
  expect_conditional_selections<int64_t>();
}

}  // namespace
}  // namespace wisp
