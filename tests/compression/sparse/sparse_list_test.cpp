#include "compression/sparse/sparse_list.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "compression/code.h"
#include "compression/slices.h"
#include "core/random.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

using Sparse = std::map<uint32_t, float>;

/// A list with its memory.
struct OwnedList {
  std::vector<int64_t> memory;
  SparseList list;
  OwnedList(int64_t fields, int64_t entries)
      : memory(static_cast<size_t>(layout_bytes<SparseList>(fields, entries) / 8)),
        list(lay_out<SparseList>(reinterpret_cast<std::byte*>(memory.data()), fields, entries)) {}
  OwnedList(const UnitSpec& spec, const Room& room)
      : OwnedList(static_cast<int64_t>(spec.fields.size()), room.of(spec)) {}

  void put(const UnitSpec& spec, const Room& room, const std::vector<Sparse>& content) {
    int64_t begin = 0;
    for (size_t f = 0; f < content.size(); ++f) {
      int64_t at = begin;
      for (const auto& [position, value] : content[f]) {
        list.position[at] = position;
        list.value[at++] = value;
      }
      list.range[f] = {begin, at - begin};
      begin += room.of(spec.fields[f]);
    }
  }
  std::vector<Sparse> get(size_t fields) const {
    std::vector<Sparse> content(fields);
    for (size_t f = 0; f < fields; ++f) {
      const Range range = list.range[f];
      for (int64_t j = range.begin; j < range.begin + range.count; ++j) {
        EXPECT_TRUE(j == range.begin || list.position[j - 1] < list.position[j]);
        content[f][list.position[j]] = list.value[j];
      }
    }
    return content;
  }
};

std::vector<Sparse> drawn(const UnitSpec& spec, const Room& room, uint64_t seed) {
  std::vector<Sparse> content;
  for (const Field& field : spec.fields) {
    const Philox random(seed, content.size(), 0);
    Sparse here;
    for (uint64_t j = 0; static_cast<int64_t>(j) < room.of(field); ++j)
      here[random.below(2 * j, static_cast<uint32_t>(field.numel))] =
          static_cast<float>(random.below(2 * j + 1, 9)) - 4.0f;
    content.push_back(here);
  }
  return content;
}

TEST(SparseList, MergesAndSplits) {
  const std::vector<Field> fields = layer_fields({2000, 1, 50});
  const UnitSpec spec{fields, 2051};
  const Room room{0.2}, both{.ratio = 0.2, .copies = 2}, half{.ratio = 0.2, .over = 2};
  std::vector<int64_t> scratch(static_cast<size_t>(
      (merge_lists_bytes(spec, room, room) + split_list_bytes(spec, both)) / 8));
  auto* memory = reinterpret_cast<std::byte*>(scratch.data());
  for (uint64_t round = 0; round < 20; ++round) {
    const std::vector<Sparse> in_a = drawn(spec, room, 2 * round),
                              in_b = drawn(spec, room, 2 * round + 1);
    OwnedList a(spec, room), b(spec, room), sum(spec, both), kept(spec, half), rest(spec, both);
    a.put(spec, room, in_a);
    b.put(spec, room, in_b);
    merge_lists(Stream::immediate(), spec, a.list, room, b.list, room, sum.list, both, memory);
    std::vector<Sparse> expected = in_a;
    for (size_t f = 0; f < 3; ++f)
      for (const auto& [position, value] : in_b[f]) expected[f][position] += value;
    ASSERT_EQ(sum.get(3), expected);

    split_list(Stream::immediate(), spec, {}, sum.list, both, kept.list, half, &rest.list, memory);
    const std::vector<Sparse> large = kept.get(3), small = rest.get(3);
    for (size_t f = 0; f < 3; ++f) {
      const auto most = static_cast<size_t>(half.of(fields[f]));
      EXPECT_EQ(large[f].size(), std::min(most, expected[f].size()));
      float least = 100.0f;
      Sparse together = small[f];
      for (const auto& [position, value] : large[f]) {
        least = std::min(least, std::fabs(value));
        together[position] = value;
      }
      for (const auto& [position, value] : small[f]) EXPECT_LE(std::fabs(value), least);
      EXPECT_EQ(together, expected[f]);
    }
  }
}

/// a <- a + b in place, as sums over ranks are built up.
TEST(SparseList, MergesInPlace) {
  const std::vector<Field> fields = layer_fields({300, 40});
  const UnitSpec spec{fields, 340};
  const Room room{0.1}, sum_room{.ratio = 0.1, .copies = 4};
  std::vector<int64_t> scratch(static_cast<size_t>(merge_lists_bytes(spec, sum_room, room) / 8));
  OwnedList sum(spec, sum_room);
  clear_list(Stream::immediate(), spec, sum.list);
  std::vector<Sparse> expected(2);
  for (uint64_t rank = 0; rank < 4; ++rank) {
    const std::vector<Sparse> in = drawn(spec, room, rank);
    OwnedList part(spec, room);
    part.put(spec, room, in);
    merge_lists(Stream::immediate(), spec, sum.list, sum_room, part.list, room, sum.list, sum_room,
                reinterpret_cast<std::byte*>(scratch.data()));
    for (size_t f = 0; f < 2; ++f)
      for (const auto& [position, value] : in[f]) expected[f][position] += value;
  }
  EXPECT_EQ(sum.get(2), expected);
}

/// Lists long enough for several teams, added to the slices of their fields.
TEST(SparseList, AddsToSlices) {
  const std::vector<Field> fields = two_fields(20'000, 5, 700);
  const UnitSpec spec{fields, 20'705};
  const Room room{0.8};
  const std::vector<Sparse> in_list = drawn(spec, room, 1), in_among = drawn(spec, room, 2);
  OwnedList list(spec, room), among(spec, room);
  list.put(spec, room, in_list);
  among.put(spec, room, in_among);
  std::vector<float> sum(20'800, 1.0f), common(20'800, 1.0f), expected_sum = sum,
                                                              expected_common = common;
  for (size_t f = 0; f < fields.size(); ++f) {
    each_slice(fields[f], [&](const Slice& slice, int64_t position) {
      for (const auto& [at, value] : in_list[f]) {
        if (at < position || position + slice.numel <= at) continue;
        const auto i = static_cast<size_t>(slice.offset + at - position);
        expected_sum[i] += 2.0f * value;
        if (in_among[f].count(at) > 0) expected_common[i] -= value;
      }
    });
  }
  add_list(Stream::immediate(), spec, room, list.list, 2.0f, sum.data());
  add_list(Stream::immediate(), spec, room, list.list, -1.0f, common.data(), &among.list);
  EXPECT_EQ(sum, expected_sum);
  EXPECT_EQ(common, expected_common);
}

/// A field after 2^31 elements of the arena. Index arithmetic is that of the whole arena, but
/// memory begins at the field.
TEST(SparseList, ReachesFarIntoTheArena) {
  constexpr int64_t kFar = (int64_t{1} << 31) + 12'345;
  constexpr int64_t kNumel = 20'000;
  std::vector<float> gradient(kNumel), residual(kNumel, 0.0f), result(kNumel, 0.0f);
  for (int64_t i = 0; i < kNumel; ++i)
    gradient[static_cast<size_t>(i)] = static_cast<float>(i * 7919 % kNumel) - 10'000.0f;
  Field field;
  field.slices = {{kFar, 12'000}, {kFar + 12'000, 8'000}};
  field.numel = kNumel;
  field.key = 1;
  const UnitSpec spec{{&field, 1}, kNumel};
  const Room room{0.01};
  for (const auto kind : {Selection::Kind::exact, Selection::Kind::sampled}) {
    std::fill(residual.begin(), residual.end(), 0.0f);
    std::fill(result.begin(), result.end(), 0.0f);
    OwnedList list(spec, room);
    std::vector<int64_t> scratch(static_cast<size_t>(select_list_bytes(spec, room, kind) / 8));
    const auto far = [](std::vector<float>& memory) { return memory.data() - kFar; };
    const auto source_of = [&](const Field&) {
      return Source{.gradient = far(gradient), .kept = far(residual)};
    };
    const auto fields = select_list(Stream::immediate(), spec, room, {}, {.kind = kind}, source_of,
                                    list.list, reinterpret_cast<std::byte*>(scratch.data()));
    take_values(Stream::immediate(), fields, WireFormat::f32, list.list);
    add_list(Stream::immediate(), spec, room, list.list, 1.0f, far(result));
    int64_t sent = 0;
    for (size_t i = 0; i < kNumel; ++i) {
      ASSERT_EQ(result[i] + residual[i], gradient[i]);
      if (result[i] != 0.0f) ++sent;
    }
    EXPECT_LE(sent, 200);
    EXPECT_GE(sent, 160);
  }
}

}  // namespace
}  // namespace wisp
