#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/method_rig.h"
#include "tests/support/step_info.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

MethodRig oktopk_rig(int workers, std::vector<Field> fields) {
  return MethodRig(workers, std::move(fields),
                   [] { return make_method("oktopk", "compression.start_after = 0"); });
}

/// Gradients larger at the front before step 40, and at the back after it, so that regions move.
float oktopk_gradient(int64_t step, int rank, int64_t i, int64_t numel) {
  const Philox noise(4, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
  const double place = static_cast<double>(step < 40 ? numel - i : i) / static_cast<double>(numel);
  return (noise.uniform(static_cast<uint64_t>(i)) - 0.5f) * static_cast<float>(0.2 + place);
}

using Sparse = std::map<int64_t, float>;

Sparse take_largest(const Sparse& all, size_t k) {
  std::vector<std::pair<float, int64_t>> order;
  for (const auto& [i, value] : all) order.push_back({-std::fabs(value), i});
  std::sort(order.begin(), order.end());
  order.resize(std::min(k, order.size()));
  Sparse kept;
  for (const auto& [magnitude, i] : order) kept[i] = all.at(i);
  return kept;
}

Sparse passing(const Sparse& all, float threshold) {
  Sparse kept;
  for (const auto& [i, value] : all)
    if (std::fabs(value) >= threshold) kept[i] = value;
  return kept;
}

float smallest(const Sparse& all) {
  float least = all.empty() ? 0.0f : INFINITY;
  for (const auto& [i, value] : all) least = std::min(least, std::fabs(value));
  return least;
}

/// Li & Hoefler 2022 for one field, by the steps of the authors' code, with our limits C and 4k/3.
struct ScalarOktopk {
  int64_t numel, k, workers;
  uint64_t key;
  std::vector<std::vector<float>> residual;  // by worker
  std::vector<float> t;
  float global = 0.0f;
  std::vector<int64_t> cuts = std::vector<int64_t>(15, 0);  // zeros stand for even cuts

  ScalarOktopk(int64_t field_numel, int64_t kept, int n, uint64_t field_key)
      : numel(field_numel),
        k(kept),
        workers(n),
        key(field_key),
        residual(static_cast<size_t>(n), std::vector<float>(static_cast<size_t>(numel), 0.0f)),
        t(static_cast<size_t>(n), 0.0f) {}

  int64_t border(int64_t rank) const {
    const auto cut = [&](int64_t sixteenth) {
      if (sixteenth == 0) return int64_t{0};
      if (sixteenth >= 16) return numel;
      return cuts[14] == 0 ? numel * sixteenth / 16 : cuts[static_cast<size_t>(sixteenth - 1)];
    };
    const int64_t low = cut(16 * rank / workers);
    return low + (cut(16 * rank / workers + 1) - low) * (16 * rank % workers) / workers;
  }

  void follow(float& threshold, size_t count, int64_t most, float factor) const {
    const auto n = static_cast<int64_t>(count);
    if (3 * n < 2 * k) threshold /= factor;
    if (n > most) threshold *= factor;
  }

  /// The elements above the threshold, at most 4k/3 of them.
  Sparse by_threshold(const Sparse& all, float& threshold) const {
    const auto most = static_cast<size_t>(4 * k / 3);
    if (threshold == 0.0f)
      threshold = smallest(take_largest(all, most));  // not measured yet
    else
      for (int i = 0; i < 5 && passing(all, threshold).size() > most; ++i) threshold *= 1.03f;
    return take_largest(passing(all, threshold), most);
  }

  Sparse step(int64_t now) {
    const auto limit = static_cast<size_t>(3 * k / (2 * workers));
    std::vector<Sparse> selected, sent(static_cast<size_t>(workers)),
        region(static_cast<size_t>(workers));
    for (int rank = 0; rank < workers; ++rank) {
      const auto r = static_cast<size_t>(rank);
      Sparse all;
      for (int64_t i = 0; i < numel; ++i)
        all[i] = residual[r][static_cast<size_t>(i)] += oktopk_gradient(now, rank, i, numel);
      if (now % 32 == 0) {
        selected.push_back(take_largest(all, static_cast<size_t>(k)));
        t[r] = smallest(selected[r]);
      } else {
        selected.push_back(by_threshold(all, t[r]));
      }
      follow(t[r], selected[r].size(), 5 * k / 4, 1.012f);
    }
    if (now % 64 == 0) balance(selected);
    const uint32_t start = Philox(0, static_cast<uint64_t>(now), key).bits(2);
    for (size_t r = 0; r < sent.size(); ++r) {
      for (size_t owner = 0; owner < sent.size(); ++owner) {
        const auto rank = static_cast<int64_t>(owner);
        const Sparse part(selected[r].lower_bound(border(rank)),
                          selected[r].lower_bound(border(rank + 1)));
        size_t at = 0;
        for (const auto& [i, value] : part) {
          const size_t turn = part.empty() ? 0 : (at++ + start % part.size()) % part.size();
          if (part.size() > limit && turn >= limit) continue;
          sent[r][i] = value;
          if (region[owner].count(i) == 0) region[owner][i] = 0.0f;
          region[owner][i] += value;
        }
      }
    }
    Sparse result;
    if (now % 32 == 0) {
      Sparse sums;
      for (const Sparse& own : region) sums.insert(own.begin(), own.end());
      result = take_largest(sums, static_cast<size_t>(k));
      global = smallest(result);
    } else {
      for (const Sparse& own : region) result.merge(take_largest(passing(own, global), limit));
      follow(global, result.size(), 4 * k / 3, 1.008f);
    }
    for (size_t r = 0; r < sent.size(); ++r)
      for (const auto& [i, value] : sent[r])
        if (result.count(i) > 0) residual[r][static_cast<size_t>(i)] = 0.0f;
    return result;
  }

  void balance(const std::vector<Sparse>& selected) {
    for (size_t c = 1; c < 16; ++c) {
      int64_t sum = 0;
      for (const Sparse& own : selected)
        sum += std::next(own.begin(), static_cast<std::ptrdiff_t>(c * own.size() / 16))->first;
      cuts[c - 1] = sum / workers;
    }
  }
};

/// Starts at the first update, or after dense updates that end between two measurements.
TEST(Oktopk, FollowsAScalarModelOfThePaper) {
  const std::vector<int64_t> sizes = {3000, 1200};
  for (const int workers : {1, 3}) {
    for (const int64_t start : {0, 5}) {
      MethodRig rig = oktopk_rig(workers, layer_fields(sizes));
      std::vector<ScalarOktopk> scalars;
      for (size_t f = 0; f < sizes.size(); ++f)
        scalars.emplace_back(sizes[f], sizes[f] / 50, workers, f + 1);
      for (int64_t step = start; step < 100; ++step) {
        for (int rank = 0; rank < workers; ++rank)
          for (const Field& field : rig.unit(rank).spec.fields)
            for (int64_t i = 0; i < field.numel; ++i)
              rig.gradient(rank)[field.slices[0].offset + i] =
                  oktopk_gradient(step, rank, i, field.numel);
        rig.step(sparse_info(step, 0.02));
        for (size_t f = 0; f < sizes.size(); ++f) {
          ScalarOktopk& scalar = scalars[f];
          std::vector<float> expected(static_cast<size_t>(sizes[f]), 0.0f);
          for (const auto& [i, value] : scalar.step(step)) expected[static_cast<size_t>(i)] = value;
          const int64_t offset = rig.unit(0).spec.fields[f].slices[0].offset;
          const auto of_field = [&](const float* arena) {
            return std::vector<float>(arena + offset, arena + offset + sizes[f]);
          };
          for (int rank = 0; rank < workers; ++rank) {
            const auto r = static_cast<size_t>(rank);
            // exact: the same operations in the same order
            ASSERT_EQ(of_field(rig.gradient(rank)), expected)
                << "step " << step << ", rank " << rank << ", field " << f;
            ASSERT_EQ(of_field(rig.state(rank, "residual").data<float>()), scalar.residual[r])
                << step;
            ASSERT_EQ(rig.state(rank, "local_threshold").data<float>()[f], scalar.t[r]) << step;
            ASSERT_EQ(rig.state(rank, "threshold").data<float>()[f], scalar.global) << step;
            const int64_t* cuts = rig.state(rank, "cuts").data<int64_t>() + 15 * f;
            ASSERT_EQ(std::vector<int64_t>(cuts, cuts + 15), scalar.cuts) << step;
          }
        }
      }
    }
  }
}

/// The threshold t after a second step, in which `passing` of 90 elements are 1.05 t and the others
/// below t. k is 30 and 4k/3 is 40.
float threshold_after(int64_t passing) {
  constexpr int64_t kNumel = 90;
  MethodRig rig = oktopk_rig(1, layer_fields({kNumel}));
  std::fill_n(rig.gradient(0), kNumel, 1.0f);
  rig.step(sparse_info(0, 1.0 / 3.0));  // t = 1; sent elements leave no residual, the others wait
  const float* residual = rig.state(0, "residual").data<float>();
  for (int64_t i = 0; i < kNumel; ++i)
    rig.gradient(0)[i] = (i < passing ? 1.05f : 0.5f) - residual[i];
  rig.step(sparse_info(1, 1.0 / 3.0));
  return rig.state(0, "local_threshold").data<float>()[0];
}

/// The rule of the authors' code. Above 5k/4, the next step's t is 1.012 times this one's in any
/// case.
TEST(Oktopk, RaisesTIfMoreThanFourThirdsOfKPass) {
  EXPECT_EQ(threshold_after(40), 1.012f);
  EXPECT_EQ(threshold_after(41), 1.0f * 1.03f * 1.03f / 1.012f) << "twice, and then none passes";
}

/// Gradients with a constant mean for each element. The residual grows until about k elements a
/// step reach the thresholds, which are then far above the largest gradients. (With a factor of
/// 1.05, nothing and the maximum passed in turn: less than k/2 in 75 of these steps.)
TEST(Oktopk, SendsAboutKOfStationaryGradients) {
  constexpr int kWorkers = 4;
  constexpr int64_t kNumel = 5000, kKept = 100, kSteps = 320;
  MethodRig rig = oktopk_rig(kWorkers, layer_fields({kNumel}));
  const Philox means(1, 0, 0), shares(2, 0, 0);
  int few = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int rank = 0; rank < kWorkers; ++rank) {
      const Philox noise(3, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
      for (int64_t i = 0; i < kNumel; ++i) {
        const auto at = static_cast<uint64_t>(i);
        const float mean = means.nearly_normal(at) +
                           0.3f * shares.nearly_normal(at * kWorkers + static_cast<uint64_t>(rank));
        rig.gradient(rank)[i] = (mean + noise.nearly_normal(at)) / kWorkers;
      }
    }
    rig.step(sparse_info(step, 0.02));
    const int64_t sent = std::count_if(rig.gradient(0), rig.gradient(0) + kNumel,
                                       [](float value) { return value != 0.0f; });
    if (step % 32 == 0) {
      EXPECT_EQ(sent, kKept) << "exactly, step " << step;
    }
    EXPECT_GT(sent, kKept / 4) << step;
    EXPECT_LE(sent, 3 * kKept / 2) << step;
    few += sent < kKept / 2;
  }
  EXPECT_LT(few, kSteps / 20);
}

/// The messages' capacities are less than 6 k numbers a worker.
TEST(Oktopk, HasRoomForLessThanSixKNumbers) {
  const auto method = make_method("oktopk", "compression.start_after = 0");
  for (const int workers : {2, 3, 4, 7, 16, 64, 1000}) {
    for (const int64_t k : {1, 5, 11, 43, 100, 667, 10'000}) {
      if (3 * k < 2 * workers) continue;
      const std::vector<Field> fields = layer_fields({1000 * k});
      const UnitSpec spec{fields, 1000 * k};
      StepInfo info = sparse_info(1, 0.001, workers);  // a step that measures nothing
      ASSERT_EQ(method->rounds(spec, info), 2);
      int64_t numbers = 0;
      for (int round = 0; round < 2; ++round)
        numbers += (method->message(spec, info, round).bytes - 4) / 4 * (workers - 1);
      EXPECT_LT(numbers, 6 * k) << workers << " workers, k = " << k;
    }
  }
}

/// Counts the numbers sent in all rounds of 64 steps and all fields. About k reach the result.
TEST(Oktopk, SendsLessThanSixKNumbers) {
  constexpr int kWorkers = 4;
  const std::vector<int64_t> sizes = {4000, 20'000};
  constexpr int64_t kKept = 40 + 200;
  MethodRig rig = oktopk_rig(kWorkers, layer_fields(sizes));
  const UnitSpec& spec = rig.unit(0).spec;
  int64_t most = 0, all = 0, results = 0;
  for (int64_t step = 0; step < 64; ++step) {
    for (int rank = 0; rank < kWorkers; ++rank)
      for (int64_t i = 0; i < rig.unit(0).gradient.numel(); ++i)
        rig.gradient(rank)[i] = oktopk_gradient(step, rank, i, 1'000'000);  // similar scales
    const StepInfo info = sparse_info(step, 0.01, kWorkers);
    rig.step(info);
    int64_t of_step = 0;
    for (int rank = 0; rank < kWorkers; ++rank) {
      int64_t bytes = 0;
      for (int round = 0; round < rig.compressor(rank).rounds(spec, info); ++round) {
        const auto here = static_cast<int64_t>(rig.sent(rank, round).size());
        // the parts for all ranks, its own included, are joined already
        const Collective kind = rig.compressor(rank).message(spec, info, round).kind;
        bytes += kind == Collective::all_gather ? (kWorkers - 1) * here : here;
      }
      most = std::max(most, bytes / 4);
      of_step = std::max(of_step, bytes / 4);
      all += bytes / 4;
    }
    if (step % 32 != 0) {
      EXPECT_LT(of_step, 6 * kKept) << step;
    }
    results += std::count_if(rig.gradient(0), rig.gradient(0) + rig.unit(0).gradient.numel(),
                             [](float value) { return value != 0.0f; });
  }
  EXPECT_LT(most, (3 + 2 * (kWorkers - 1)) * kKept + 120) << "all rounds: parts, k sums, borders";
  EXPECT_LT(all / 64 / kWorkers, 6 * kKept);
  EXPECT_GT(results / 64, kKept * 2 / 3);
  EXPECT_LT(results / 64, kKept * 5 / 4);
}

TEST(Oktopk, StartsAfterDenseUpdates) {
  const auto made = make_method("oktopk", "");
  EXPECT_FALSE(made->started(sparse_info(511, 0.02)));
  EXPECT_TRUE(made->started(sparse_info(512, 0.02)));
  const std::vector<Field> fields = layer_fields({100});
  const auto later = make_method("oktopk", "compression.start_after = 5");
  for (const auto& [step, rounds] : {std::pair(5, 3), {6, 2}, {37, 2}, {64, 2}, {69, 3}})
    EXPECT_EQ(later->rounds({fields, 100}, sparse_info(step, 0.02, 4)), rounds) << step;
}

TEST(Oktopk, RefusesFactorsThatGoTheWrongWay) {
  EXPECT_EQ(error_of([] { make_method("oktopk", "compression.start_after = -1"); }),
            "test.toml:1: compression.start_after is -1, expected 0 or more");
  EXPECT_EQ(error_of([] { make_method("oktopk", "compression.global_factor = 0.9"); }),
            "test.toml:1: compression.global_factor is 0.9, expected 1 or more");
}

TEST(Oktopk, SharesWhatAllRanksMustKnow) {
  const std::vector<Field> fields = layer_fields({100, 20});
  for (const StateSpec& spec : make_method("oktopk", "")->state({fields, 120}, 4)) {
    const bool shared = spec.name == "threshold" || spec.name == "cuts";
    EXPECT_EQ(spec.sharing, shared ? Sharing::shared : Sharing::per_rank) << spec.name;
    EXPECT_EQ(spec.per_element, spec.name == "residual");
    if (spec.name == "cuts") {
      EXPECT_EQ(spec.shape, (Shape{30})) << "for any number of workers";
    }
  }
}

}  // namespace
}  // namespace wisp
