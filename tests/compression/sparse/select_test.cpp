#include "compression/sparse/select.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>
#include <set>

#include "compression/code.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// The positions selected in a field, ascending.
template <class From>
std::vector<uint32_t> select_from(const Field& field, const From& source, int64_t k,
                                  const Selection& selection, int64_t step) {
  select::Sizes sizes;
  sizes.add(field.slices, select::Extent(field.numel, k, selection.kind));
  std::vector<uint32_t> positions(static_cast<size_t>(k) + 1, 77);
  std::vector<int64_t> scratch(static_cast<size_t>(layout_bytes<select::Scratch>(sizes) / 8 + 1),
                               -1);
  const Philox random(1, static_cast<uint64_t>(step), field.key);
  const auto fields = select::write_fields(
      Stream::immediate(), 1,
      [&](int64_t) {
        return SelectFrom<From>{field.slices, source, k, random};
      },
      selection.kind, reinterpret_cast<std::byte*>(scratch.data()));
  Range range{-1, -1};
  select_entries(Stream::immediate(), fields, selection, positions.data(), &range);
  EXPECT_EQ(positions.back(), 77u) << "wrote behind the k-th";
  EXPECT_EQ(scratch.back(), -1) << "wrote behind the scratch";
  positions.resize(static_cast<size_t>(range.count));
  return positions;
}

/// The k positions selected in `values`, spread over slices of these sizes. Zeros count.
std::vector<uint32_t> select(const std::vector<float>& values, int64_t k, int64_t step = 0,
                             std::vector<int64_t> slices = {}) {
  if (slices.empty()) slices = {static_cast<int64_t>(values.size())};
  const Field field = joined_field(slices);
  std::vector<float> arena(
      static_cast<size_t>(field.slices.back().offset + field.slices.back().numel),
      std::numeric_limits<float>::infinity());  // padding must not be read
  size_t position = 0;
  for (const Slice& slice : field.slices) {
    for (int64_t i = 0; i < slice.numel; ++i)
      arena[static_cast<size_t>(slice.offset + i)] = values[position++];
  }
  const std::vector<uint32_t> positions =
      select_from(field, Source{.gradient = arena.data()}, k, {.least = 0}, step);
  EXPECT_EQ(std::ssize(positions), k);
  return positions;
}

/// Expects ascending positions with the k largest magnitudes. Ties may be any.
void expect_topk(const std::vector<float>& values, const std::vector<uint32_t>& positions,
                 const std::string& what) {
  std::vector<float> sorted, picked;
  for (const float value : values) sorted.push_back(std::fabs(value));
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  sorted.resize(positions.size());
  for (size_t j = 0; j < positions.size(); ++j) {
    ASSERT_LT(positions[j], values.size()) << what;
    if (j > 0) {
      ASSERT_LT(positions[j - 1], positions[j]) << what;
    }
    picked.push_back(std::fabs(values[positions[j]]));
  }
  std::sort(picked.begin(), picked.end(), std::greater<>());
  ASSERT_EQ(picked, sorted) << what;
}

using Draw = float (*)(const Philox&, uint64_t);

struct Distribution {
  const char* name;
  Draw draw;
};

const std::vector<Distribution> kDistributions = {
    {"normal", [](const Philox& p, uint64_t i) { return static_cast<float>(normal(p, i)); }},
    {"heavy tail",
     [](const Philox& p, uint64_t i) { return std::pow(p.uniform(i) + 1e-7f, -3.0f) - 1.0f; }},
    {"zeros", [](const Philox&, uint64_t) { return 0.0f; }},
    {"all equal", [](const Philox&, uint64_t) { return -2.5f; }},
    {"two values", [](const Philox& p, uint64_t i) { return p.uniform(i) < 0.5f ? 1.0f : -2.0f; }},
    {"mostly zero", [](const Philox& p,
                       uint64_t i) { return p.uniform(i) < 0.0002f ? 1.0f + p.uniform(i) : 0.0f; }},
    {"denormal",
     [](const Philox& p, uint64_t i) { return float_from_bits(p.bits(i) & 0x807fffffu); }},
    {"huge", [](const Philox& p, uint64_t i) { return (2.0f * p.uniform(i) - 1.0f) * 3e38f; }},
    {"rows",  // neighbours alike: the worst case for a sample of clusters
     [](const Philox& p, uint64_t i) { return p.uniform(i / 97) * (1.0f + 1e-4f * p.uniform(i)); }},
};

TEST(Select, PicksWhatASortPicks) {
  for (const Distribution& distribution : kDistributions) {
    for (const int64_t n : {1, 2, 63, 64, 65, 1000, 4096, 4097, 20'000, 40'001}) {
      std::vector<float> values(static_cast<size_t>(n));
      const Philox philox(3, static_cast<uint64_t>(n), 0);
      for (size_t i = 0; i < values.size(); ++i) values[i] = distribution.draw(philox, i);
      for (const int64_t k : std::set<int64_t>{1, (n + 999) / 1000, (n + 3) / 4, n}) {
        expect_topk(values, select(values, k), concat(distribution.name, ", top ", k, " of ", n));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Select, TakesSlicesAsOneField) {
  std::vector<float> values(50'000);
  const Philox philox(4, 0, 0);
  for (size_t i = 0; i < values.size(); ++i) values[i] = philox.uniform(i) - 0.5f;
  for (const int64_t k : {50, 3000, 50'000})
    EXPECT_EQ(select(values, k), select(values, k, 0, {1, 9, 20'000, 3, 29'987})) << k;
  std::fill(values.begin(), values.end(), 1.0f);  // the case of a list that overflows
  EXPECT_EQ(select(values, 50), select(values, 50, 0, {1, 9, 20'000, 3, 29'987}));
}

TEST(Select, DoesNotDependOnThreads) {
  std::vector<float> values(200'000);
  const Philox philox(5, 0, 0);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(normal(philox, i));
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto one = select(values, 200);
  for (const int threads : {2, 3, 4}) {
    omp_set_num_threads(threads);
    EXPECT_EQ(select(values, 200), one) << threads;
  }
  omp_set_num_threads(before);
}

TEST(Select, TakesTiesFromAllOverTheField) {
  constexpr int64_t kNumel = 10'000, kPicked = 10, kSteps = 500;
  const std::vector<float> values(kNumel, 1.0f);
  int64_t quarter[4] = {};
  for (int64_t step = 0; step < kSteps; ++step) {
    for (const uint32_t position : select(values, kPicked, step)) ++quarter[position * 4 / kNumel];
  }
  // Each step's picks are neighbours, so a quarter gets 500 draws of probability 1/4: 125 ± 9.7
  // runs, within five deviations.
  for (const int64_t picks : quarter)
    EXPECT_NEAR(static_cast<double>(picks) / kPicked, 125.0, 49.0);
}

struct CountingSource {
  std::vector<int>* taken;
  void prefetch(int64_t) const {}
  float peek(int64_t) const { return 1.0f; }
  float take(int64_t i) const {
    ++(*taken)[static_cast<size_t>(i)];
    return 1.0f;
  }
  float held(int64_t) const { return 1.0f; }
};

TEST(Select, TakesEachElementOnce) {
  const Field field = joined_field({30'000, 1, 7000});
  std::vector<int> taken(40'000, 0);
  select_from(field, CountingSource{&taken}, 37, {.least = 0}, 1);
  std::vector<int> expected(40'000, 0);
  for (const Slice& slice : field.slices)
    std::fill_n(expected.begin() + slice.offset, slice.numel, 1);
  EXPECT_EQ(taken, expected);
}

/// The positions selected in `values`, ascending.
std::vector<uint32_t> selected(const std::vector<float>& values, const Selection& selection,
                               int64_t k, int64_t step) {
  const Field field = joined_field({static_cast<int64_t>(values.size())});
  return select_from(field, Source{.gradient = values.data()}, k, selection, step);
}
std::vector<uint32_t> sampled(const std::vector<float>& values, int64_t k, int64_t step) {
  return selected(values, {.kind = Selection::Kind::sampled}, k, step);
}

/// The first positions of the clusters in the sample that selected() draws.
std::vector<size_t> sampled_positions(int64_t numel, int64_t k, Selection::Kind kind,
                                      int64_t step) {
  const int64_t clusters = select::Extent(numel, k, kind).sample / select::kCluster;
  const int64_t stride = numel / clusters;
  const Philox random(1, static_cast<uint64_t>(step), joined_field({numel}).key);
  const int64_t first = random.below(1, static_cast<uint32_t>(stride - select::kCluster + 1));
  std::vector<size_t> positions;
  for (int64_t c = 0; c < clusters; ++c)
    positions.push_back(static_cast<size_t>(first + c * stride));
  return positions;
}

/// Mostly zeros, half of them negative, and `others` other numbers in rows of `row` neighbours.
std::vector<float> mostly_zeros(int64_t numel, int64_t others, int64_t row) {
  std::vector<float> values(static_cast<size_t>(numel));
  const Philox philox(6, static_cast<uint64_t>(others), 0);
  for (size_t i = 0; i < values.size(); i += 2) values[i] = -0.0f;
  const int64_t rows = (others + row - 1) / row;
  for (int64_t i = 0; i < others; ++i) {
    const int64_t at = (i / row) * (numel / std::max(rows, int64_t{1})) + i % row;
    values[static_cast<size_t>(at)] =
        static_cast<float>(normal(philox, static_cast<uint64_t>(i))) + 0.001f;
  }
  return values;
}

std::vector<uint32_t> not_zeros(const std::vector<float>& values) {
  std::vector<uint32_t> positions;
  for (uint32_t i = 0; i < values.size(); ++i)
    if (values[i] != 0.0f) positions.push_back(i);
  return positions;
}

/// Selects min(k, number of elements that are not zero), whatever the size; -0 is a zero.
TEST(Select, NeverSelectsZeros) {
  for (const int64_t n : {1000, 4096, 40'000, 400'000}) {
    const int64_t k = kept_count(0.01, n);
    for (const int64_t others : {int64_t{0}, int64_t{1}, k - 1, k, k + 1, 2 * k, 20 * k}) {
      for (const int64_t row : {1, 7, 100}) {
        const std::vector<float> values = mostly_zeros(n, others, row);
        const std::vector<uint32_t> all = not_zeros(values);
        ASSERT_EQ(static_cast<int64_t>(all.size()), others);
        const std::string what = concat(n, ", ", others, " in rows of ", row);
        const auto exact = selected(values, {}, k, 0);
        if (others <= k) {
          ASSERT_EQ(exact, all) << what;
          // a threshold of 0, such as one that was never measured, lets no zeros pass
          ASSERT_EQ(selected(values, {.kind = Selection::Kind::threshold}, k, 0), all) << what;
        } else {
          ASSERT_EQ(static_cast<int64_t>(exact.size()), k) << what;
          expect_topk(values, exact, what);
        }
        const auto few = sampled(values, k, 0);
        ASSERT_LE(static_cast<int64_t>(few.size()), k) << what;
        expect_topk(values, few, what);
        for (const uint32_t position : few) ASSERT_NE(values[position], 0.0f) << what;
      }
    }
  }
}

/// The sample sees only larger numbers and errs high, and fewer than k elements are not zero.
TEST(Select, AMisledSampleBringsNoZeros) {
  constexpr int64_t kNumel = 200'000, kPicked = 1000;
  const Selection::Kind kind = Selection::Kind::exact;
  const auto seen = sampled_positions(kNumel, kPicked, kind, 0);
  const auto rank = static_cast<size_t>(select::Extent(kNumel, kPicked, kind).rank);
  std::vector<float> values(kNumel);
  for (size_t i = 0; i < 600; ++i) values[i] = 0.5f;
  for (size_t i = 0; i < rank; ++i) values[seen[i]] = 2.0f;
  const std::vector<uint32_t> all = not_zeros(values);
  ASSERT_LT(static_cast<int64_t>(all.size()), kPicked);
  EXPECT_EQ(selected(values, {}, kPicked, 0), all);
}

/// Nothing below `least` is selected, since a 16-bit value would round it to zero.
TEST(Select, SelectsFromTheLeastMagnitudeOn) {
  std::vector<float> values(50'000, 1e-9f);
  for (size_t i = 0; i < 30; ++i) values[i * 1500] = i % 3 == 0 ? -1e-3f : 1e-8f;
  for (const auto kind : {Selection::Kind::exact, Selection::Kind::sampled}) {
    const auto picked = selected(values, {.kind = kind, .least = float_bits(1e-4f)}, 100, 0);
    ASSERT_EQ(picked.size(), 10u);
    for (const uint32_t position : picked) EXPECT_EQ(values[position], -1e-3f);
  }
}

/// Threads in any order, as on a device, with lists that are good, too long and too short.
TEST(Select, IsTheSameInAnyOrderOfATeam) {
  std::vector<std::vector<float>> fields{mostly_zeros(40'000, 3000, 7), mostly_zeros(3000, 900, 1)};
  fields.emplace_back(20'000, 1.0f);
  std::vector<float> misled(200'000);
  for (size_t i = 0; i < 600; ++i) misled[i] = 0.5f;
  for (const size_t at : sampled_positions(200'000, 1000, Selection::Kind::exact, 0))
    misled[at] = 2.0f;
  fields.push_back(misled);
  for (const std::vector<float>& values : fields) {
    const int64_t k = kept_count(0.005, std::ssize(values));
    for (const auto kind :
         {Selection::Kind::exact, Selection::Kind::sampled, Selection::Kind::threshold}) {
      const Selection selection{.kind = kind, .threshold = 0.9f};
      const auto expected = selected(values, selection, k, 0);
      for (uint32_t seed = 1; seed <= 2; ++seed) {
        const ShuffledTeams shuffled(seed);
        EXPECT_EQ(selected(values, selection, k, 0), expected);
      }
    }
  }
}

struct WatchedSource {
  const float* values;
  int64_t* reads;  // number of calls of held()
  void prefetch(int64_t) const {}
  float peek(int64_t i) const { return values[i]; }
  float take(int64_t i) const { return values[i]; }
  float held(int64_t i) const {
    ++*reads;
    return values[i];
  }
};

/// The number of reads of elements after the one pass over the field.
int64_t reads_again(const std::vector<float>& values, int64_t k, const Selection& selection,
                    int64_t step) {
  const Field field = joined_field({static_cast<int64_t>(values.size())});
  int64_t reads = 0;
  select_from(field, WatchedSource{values.data(), &reads}, k, selection, step);
  return reads;
}

/// Only listed elements are read again, no more than of a dense field.
TEST(Select, LooksAtZerosOnce) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);  // the source counts without synchronisation
  constexpr int64_t kNumel = 600'000;
  const int64_t k = kept_count(0.001, kNumel);
  const int64_t listed = select::Extent(kNumel, k).capacity;
  for (const int64_t others : {int64_t{0}, k / 2, k, 2 * k, 10 * k, 70 * k, kNumel}) {
    for (const int64_t row : {1, 200, 1500}) {
      const std::vector<float> values = mostly_zeros(kNumel, others, row);
      for (int64_t step = 0; step < 5; ++step) {
        ASSERT_LE(reads_again(values, k, {}, step), listed)
            << others << " in rows of " << row << ", step " << step;
      }
    }
  }
  const std::vector<float> zeros = mostly_zeros(kNumel, 0, 1);
  for (const auto kind : {Selection::Kind::sampled, Selection::Kind::threshold})
    EXPECT_EQ(reads_again(zeros, k, {.kind = kind}, 0), 0);
  omp_set_num_threads(before);
}

/// Expects all elements that pass the threshold, or the k largest of them.
void expect_passed(const std::vector<float>& values, float threshold, int64_t k, int64_t step,
                   const std::string& what) {
  std::vector<uint32_t> passing;
  for (uint32_t i = 0; i < values.size(); ++i)
    if (std::fabs(values[i]) >= threshold) passing.push_back(i);
  const auto picked =
      selected(values, {.kind = Selection::Kind::threshold, .threshold = threshold}, k, step);
  if (static_cast<int64_t>(passing.size()) <= k) {
    ASSERT_EQ(picked, passing) << what;
  } else {
    ASSERT_EQ(static_cast<int64_t>(picked.size()), k) << what;
    expect_topk(values, picked, what);
  }
}

TEST(Select, TakesWhatPassesAThresholdOrTheLargestOfIt) {
  for (const Distribution& distribution : kDistributions) {
    for (const int64_t n : {1000, 20'000, 200'000}) {
      std::vector<float> values(static_cast<size_t>(n));
      const Philox philox(3, static_cast<uint64_t>(n), 0);
      for (size_t i = 0; i < values.size(); ++i) values[i] = distribution.draw(philox, i);
      for (const float threshold : {1e-30f, 0.1f, 2.0f, 100.0f})
        expect_passed(values, threshold, kept_count(0.005, n), 0,
                      concat(distribution.name, ", ", n, ", ", threshold));
    }
  }
}

/// The sample sees the few large numbers more often than they occur, and errs high.
TEST(Select, AMisledSampleHidesNothingThatPassesTheThreshold) {
  constexpr int64_t kNumel = 200'000, kPicked = 1000;
  for (int64_t step = 0; step < 3; ++step) {
    std::vector<float> values(kNumel);
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
    for (const size_t i : sampled_positions(kNumel, kPicked, Selection::Kind::threshold, step))
      values[i] = 2.0f;
    expect_passed(values, 0.5e-3f, kPicked, step, "more than k");
    expect_passed(values, 0.05f, kPicked, step, "fewer than k");
  }
}

/// The number selected keeps to Lin et al.'s bounds, and the largest elements are selected.
TEST(Select, SamplesAThresholdThatKeepsToTheBounds) {
  for (const Distribution& distribution : kDistributions) {
    const std::string name = distribution.name;
    if (name == "zeros" || name == "mostly zero" || name == "denormal" || name == "heavy tail")
      continue;
    for (const int64_t n : {1000, 20'000, 200'000}) {
      std::vector<float> values(static_cast<size_t>(n));
      for (int64_t step = 0; step < (n < 100'000 ? 10 : 2); ++step) {
        const Philox philox(3, static_cast<uint64_t>(n), static_cast<uint64_t>(step));
        for (size_t i = 0; i < values.size(); ++i) values[i] = distribution.draw(philox, i);
        const int64_t k = kept_count(0.005, n);
        const std::vector<uint32_t> picked = sampled(values, k, step);
        ASSERT_LE(static_cast<int64_t>(picked.size()), k) << name;
        ASSERT_GE(5 * static_cast<int64_t>(picked.size()), 4 * k) << name << ", " << n;
        expect_topk(values, picked, name);
      }
    }
  }
}

/// 30 large numbers, which the sample sees, lie among tiny ones, and 100 are asked for. Ten
/// adaptations do not find more.
TEST(Select, SampledSelectsLessWhereThereIsLess) {
  constexpr int64_t kNumel = 100'000, kPicked = 100;
  for (int64_t step = 0; step < 20; ++step) {
    std::vector<size_t> large = sampled_positions(kNumel, kPicked, Selection::Kind::sampled, step);
    large.resize(30);
    std::vector<float> values(kNumel, 1e-6f);
    for (const size_t i : large) values[i] = 1.0f;
    EXPECT_EQ(sampled(values, kPicked, step), std::vector<uint32_t>(large.begin(), large.end()));
  }
}

/// 90 large numbers for 100 asked for are within the bounds, whether or not the sample sees them.
TEST(Select, SampledKeepsToTheBoundsWhereNineTenthsAreLarge) {
  std::vector<float> values(100'000, 1e-6f);
  for (size_t i = 0; i < 90; ++i) values[i * 1100] = 1.0f;
  for (int64_t step = 0; step < 20; ++step) {
    const auto picked = sampled(values, 100, step);
    EXPECT_GE(picked.size(), 80u);
    EXPECT_LE(picked.size(), 100u);
  }
}

TEST(Select, KeepsTheCeilingButNotARoundingError) {
  EXPECT_EQ(kept_count(0.001, 1000), 1);
  EXPECT_EQ(kept_count(0.001, 3000), 3);
  EXPECT_EQ(kept_count(0.001, 1001), 2);
  EXPECT_EQ(kept_count(0.001, 1), 1);
  EXPECT_EQ(kept_count(1.0, 7), 7);
  EXPECT_EQ(kept_count(0.25, 10), 3);
  EXPECT_EQ(kept_count(0.001, 25'000'000), 25'000);
  for (int64_t n = 1; n <= 100'000; n += 7) {
    EXPECT_EQ(kept_count(0.001, n), (n + 999) / 1000);
    EXPECT_EQ(kept_count(0.01, n), (n + 99) / 100);
    EXPECT_EQ(kept_count(0.1, n), (n + 9) / 10);
  }
}

TEST(Select, ListsLittleMoreThanK) {
  // Memory and time depend on this: the list has a few k for small ratios, all for large ones.
  EXPECT_LT(select::Extent(25'000'000, 25'000).capacity, 4 * 25'000);
  EXPECT_LT(select::Extent(25'000'000, 6'250'000).capacity, 7'000'000);
  EXPECT_EQ(select::Extent(4000, 4).capacity, 4000);
}

}  // namespace
}  // namespace wisp
