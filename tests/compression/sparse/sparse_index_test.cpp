#include "compression/sparse/sparse_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compression/sparse/pack.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

using Positions = std::vector<std::vector<int64_t>>;  // by field, ascending

const std::vector<std::string> kValues = {"f32", "f16", "bf16", "natural"};
const std::vector<std::string> kIndices = {"runs16", "u32", "gamma", "bitmap"};

StepInfo info_of(double ratio) {
  StepInfo info;
  info.ratio = ratio;
  return info;
}

int64_t log2_of(int64_t number) {
  int64_t log = 0;
  while (number >> (log + 1) > 0) ++log;
  return log;
}

int64_t filled(int64_t bytes, int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// Bytes of a payload with these entries, by the law.
int64_t law(const std::string& values, const std::string& indices, const Positions& positions,
            const std::vector<int64_t>& sizes) {
  int64_t entries = 0, words = 0, chunks = 0, code = 0;
  for (size_t f = 0; f < sizes.size(); ++f) {
    int64_t before = -1, bits = 0, in_chunk = 0;
    words += (sizes[f] + 31) / 32;
    for (const int64_t position : positions[f]) {
      const int64_t gap = position - before;
      entries += 1 + (indices == "runs16" ? (gap - 1) / 65'536 : 0);
      if (in_chunk == 0) ++chunks;
      bits += 2 * log2_of(gap) + 1;
      if (++in_chunk == 256 || position == positions[f].back()) {
        code += (bits + 31) / 32;
        in_chunk = bits = 0;
      }
      before = position;
    }
  }
  const auto fields = static_cast<int64_t>(sizes.size());
  const int64_t counts = 4 * (indices == "runs16" ? fields - 1 : fields);
  const int64_t each = values == "f32" ? 4 : 2;
  const int64_t bytes =
      counts + (values == "natural" ? entries + (entries + 7) / 8 : each * entries);
  if (indices == "runs16") return filled(bytes, 2) + 2 * entries;
  if (indices == "u32") return filled(bytes, 4) + 4 * entries;
  if (indices == "bitmap") return filled(bytes, 4) + 4 * words;
  return filled(bytes, 4) + filled(2 * chunks, 4) + 4 * code;
}

struct Sent {
  PayloadBytes payload;
  int64_t capacity;
};

/// Encodes by top-k a gradient that is not zero at `positions`, and decodes it. Values are powers
/// of two.
Sent send(const std::string& values, const std::string& indices, const Positions& positions,
          const std::vector<int64_t>& sizes, double ratio) {
  const std::string toml =
      concat("[compression]\nvalues = '", values, "'\nindices = '", indices, "'");
  UnitRig rig(layer_fields(sizes), make_method("topk", toml));
  std::vector<float> gradient(static_cast<size_t>(rig.unit.gradient.numel()), 0.0f);
  for (size_t f = 0; f < sizes.size(); ++f) {
    for (const int64_t position : positions[f]) {
      gradient[static_cast<size_t>(rig.fields[f].slices[0].offset + position)] =
          (position % 2 == 0 ? 1.0f : -1.0f) * static_cast<float>(1 << position % 5);
    }
  }
  std::copy(gradient.begin(), gradient.end(), rig.gradient());
  const StepInfo info = info_of(ratio);
  const PayloadBytes payload = rig.encode(info);
  rig.decode(info, {payload});
  EXPECT_EQ(std::vector<float>(rig.gradient(), rig.gradient() + gradient.size()), gradient)
      << values << ", " << indices;
  return {payload, rig.compressor->message(rig.unit.spec, info, 0).bytes};
}

Positions drawn(const std::vector<int64_t>& sizes, double ratio, uint64_t seed) {
  Positions positions;
  for (const int64_t size : sizes) {
    std::vector<int64_t> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    const auto k = static_cast<size_t>(kept_count(ratio, size));
    const Philox random(seed, positions.size(), 0);
    for (size_t j = 0; j < k; ++j)
      std::swap(all[j], all[j + random.below(j, static_cast<uint32_t>(all.size() - j))]);
    all.resize(k);
    std::sort(all.begin(), all.end());
    positions.push_back(all);
  }
  return positions;
}

TEST(SparseIndex, KeepsToItsLawWithEveryFormat) {
  const std::vector<int64_t> sizes = {1, 999, 33, 5000, 70'000, 64};
  for (const std::string& values : kValues) {
    for (const std::string& indices : kIndices) {
      for (const double ratio : {1e-5, 0.001, 0.03, 0.4, 1.0}) {
        const Positions positions = drawn(sizes, ratio, 3);
        const Sent sent = send(values, indices, positions, sizes, ratio);
        EXPECT_EQ(static_cast<int64_t>(sent.payload.size()), law(values, indices, positions, sizes))
            << values << ", " << indices << ", " << ratio;
        EXPECT_LE(static_cast<int64_t>(sent.payload.size()), sent.capacity);
      }
    }
  }
}

TEST(SparseIndex, IsTheSameInAnyOrderOfATeam) {
  const std::vector<int64_t> sizes{70'000, 300, 5000};
  Positions positions(sizes.size());
  for (size_t f = 0; f < sizes.size(); ++f)
    for (int64_t at = static_cast<int64_t>(f); at < sizes[f]; at += 3 + at % 11)
      positions[f].push_back(at);
  for (const std::string& values : kValues) {
    for (const std::string& indices : kIndices) {
      const PayloadBytes expected = send(values, indices, positions, sizes, 0.2).payload;
      for (uint32_t seed = 1; seed <= 2; ++seed) {
        const ShuffledTeams shuffled(seed);
        EXPECT_EQ(send(values, indices, positions, sizes, 0.2).payload, expected)
            << values << ", " << indices;
      }
    }
  }
}

/// Long gaps at every place where one can be. All formats but gamma meet their capacity exactly.
TEST(SparseIndex, HoldsTheLongestGaps) {
  constexpr int64_t kNumel = 3 * 65'536 + 2;
  const std::vector<std::vector<int64_t>> patterns = {
      {0, 65'536}, {0, 65'537},           {65'535, 131'071},       {65'536, 131'073},
      {0, 1},      {131'072, kNumel - 1}, {kNumel - 2, kNumel - 1}};
  for (const std::string& indices : kIndices) {
    int64_t most = 0, capacity = 0;
    for (const std::vector<int64_t>& pattern : patterns) {
      const Sent sent = send("f32", indices, {pattern}, {kNumel}, 2.0 / kNumel);
      const auto bytes = static_cast<int64_t>(sent.payload.size());
      EXPECT_EQ(bytes, law("f32", indices, {pattern}, {kNumel})) << indices << pattern[0];
      most = std::max(most, bytes);
      capacity = sent.capacity;
    }
    EXPECT_LE(most, capacity) << indices;
    if (indices != "gamma") {
      EXPECT_EQ(most, capacity) << indices;
    }
  }
}

/// The gamma capacity is the worst case: no cut of n into at most k gaps needs more bits, and one
/// needs as many.
TEST(SparseIndex, KnowsTheWorstGaps) {
  for (int64_t numel = 1; numel <= 40; ++numel) {
    // bits[k][n]: the most bits of k gaps that add up to at most n
    std::vector<std::vector<int64_t>> bits(static_cast<size_t>(numel + 1),
                                           std::vector<int64_t>(static_cast<size_t>(numel + 1), 0));
    for (int64_t k = 1; k <= numel; ++k) {
      for (int64_t n = 1; n <= numel; ++n) {
        int64_t& most = bits[static_cast<size_t>(k)][static_cast<size_t>(n)];
        for (int64_t gap = 1; gap <= n; ++gap)
          most = std::max(most, 2 * log2_of(gap) + 1 +
                                    bits[static_cast<size_t>(k - 1)][static_cast<size_t>(n - gap)]);
      }
      const int64_t most = *std::max_element(bits[static_cast<size_t>(k)].begin(),
                                             bits[static_cast<size_t>(k)].end());
      const std::vector<Field> fields = layer_fields({numel});
      const Room room{static_cast<double>(k) / static_cast<double>(numel)};
      EXPECT_EQ(gamma_format().most_bytes({fields, numel}, room), 4 + 4 * ((most + 31) / 32))
          << k << " of " << numel;
      if (k * 2 <= numel) {
        EXPECT_LE(
            static_cast<double>(most),
            static_cast<double>(k) *
                    (2.0 * std::log2(static_cast<double>(numel) / static_cast<double>(k)) + 1.0) +
                1e-9);
      }
    }
  }
}

/// With more than one chunk, every chunk's last word may be almost empty.
TEST(SparseIndex, CapacityCoversChunks) {
  for (const int64_t gap : {1, 2, 3, 4, 7, 8, 64}) {
    std::vector<int64_t> even;
    for (int64_t j = 1; j <= 1000; ++j) even.push_back(j * gap - 1);
    const Sent sent = send("f32", "gamma", {even}, {1000 * gap}, 1.0 / static_cast<double>(gap));
    EXPECT_LE(static_cast<int64_t>(sent.payload.size()), sent.capacity) << gap;
    EXPECT_GE(static_cast<int64_t>(sent.payload.size()) + 100, sent.capacity * 2 / 3) << gap;
  }
}

std::string chosen(int64_t numel, double ratio, int64_t value_bits = 32) {
  const std::vector<Field> fields = layer_fields({numel});
  return index_format(Indices::shortest, {fields, numel}, {ratio}, value_bits).name;
}

TEST(SparseIndex, TakesTheShortestByRule) {
  for (int64_t numel = 1; numel < 4'000'000'000; numel += 1 + numel / 50) {
    EXPECT_EQ(chosen(numel, 0.001), "runs16") << numel;  // DGC's ratio: 6 bytes an entry
    EXPECT_EQ(chosen(numel, 0.001, 9), "runs16") << numel;
  }
  EXPECT_EQ(chosen(1'000'000, 1e-5), "u32");
  EXPECT_EQ(chosen(1'000'000, 0.01), "gamma");
  EXPECT_EQ(chosen(1'000'000, 0.0625), "gamma");
  EXPECT_EQ(chosen(1'000'000, 0.25), "bitmap");
  EXPECT_EQ(chosen(1'000'000, 1.0), "bitmap");
}

std::string hex(const PayloadBytes& payload) {
  std::string text;
  for (const std::byte byte : payload) {
    const char* digits = "0123456789abcdef";
    text += digits[static_cast<int>(byte) >> 4];
    text += digits[static_cast<int>(byte) & 15];
  }
  return text;
}

/// The example of docs/wire_format.md. Field 0 has 10 elements, with 4 at 3. Field 1 has 40, with
/// -8 at 5, 16 at 32, -1 at 33 and 2 at 39.
TEST(SparseIndex, WritesTheseBytes) {
  const auto bytes = [](const std::string& values, const std::string& indices) {
    const std::string toml =
        concat("[compression]\nvalues = '", values, "'\nindices = '", indices, "'");
    UnitRig rig(layer_fields({10, 40}), make_method("topk", toml));
    rig.gradient()[3] = 4.0f;
    rig.gradient()[13 + 5] = -8.0f;
    rig.gradient()[13 + 32] = 16.0f;
    rig.gradient()[13 + 33] = -1.0f;
    rig.gradient()[13 + 39] = 2.0f;
    return hex(rig.encode(info_of(0.1)));  // 1 and 4 values
  };
  EXPECT_EQ(bytes("f32", "runs16"),
            "0100000000008040000000c100008041000080bf00000040030005001a0000000500");
  EXPECT_EQ(bytes("f16", "u32"),
            "0100000004000000004400c8004c00bc004000000300000005000000200000002100000027000000");
  EXPECT_EQ(bytes("bf16", "bitmap"),
            "0100000004000000804000c1804180bf00400000080000002000000083000000");
  EXPECT_EQ(bytes("natural", "gamma"), "01000000040000008182837f800a00000100010004000000146e0a00");
  EXPECT_EQ(bytes("natural", "runs16"), "010000008182837f800a030005001a0000000500");
}

/// Random bytes give an Error or numbers, never a write outside the fields.
TEST(SparseIndex, SurvivesRandomPayloads) {
  const std::vector<int64_t> sizes = {300, 1, 740};
  const Positions positions = drawn(sizes, 0.05, 5);
  for (const std::string values : {"f32", "natural"}) {
    for (const std::string& indices : kIndices) {
      const std::string toml =
          concat("[compression]\nvalues = '", values, "'\nindices = '", indices, "'");
      UnitRig rig(layer_fields(sizes), make_method("topk", toml));
      const auto arena = static_cast<size_t>(rig.unit.gradient.numel());
      std::vector<char> inside(arena, 0);
      for (const Field& field : rig.fields)
        std::fill_n(inside.begin() + field.slices[0].offset, field.numel, 1);
      const StepInfo info = info_of(0.05);
      const PayloadBytes good = send(values, indices, positions, sizes, 0.05).payload;
      int refused = 0;
      for (uint64_t round = 0; round < 1500; ++round) {
        const Philox random(9, round, 0);
        PayloadBytes bytes = good;
        if (round % 3 == 0) bytes.resize(random.below(0, static_cast<uint32_t>(2 * good.size())));
        const uint32_t changes = round % 5 == 0 ? static_cast<uint32_t>(bytes.size())
                                                : 1 + static_cast<uint32_t>(round % 7);
        for (uint32_t change = 0; change < changes && !bytes.empty(); ++change) {
          const size_t where = random.below(2 * change + 1, static_cast<uint32_t>(bytes.size()));
          bytes[where] = static_cast<std::byte>(random.bits(2 * change + 2));
        }
        std::fill_n(rig.gradient(), arena, 7.0f);
        refused += error_of([&] { rig.decode(info, {bytes}); }) != "no error" ? 1 : 0;
        for (size_t i = 0; i < arena; ++i)
          ASSERT_TRUE(inside[i] || rig.gradient()[i] == 7.0f) << indices << ", round " << round;
      }
      EXPECT_GT(refused, 500) << indices;
    }
  }
}

TEST(SparseIndex, NamesWhatIsWrongWithAPayload) {
  const auto complaint = [](const std::string& indices, size_t byte, int value) {
    UnitRig rig(layer_fields({100}),
                make_method("topk", "compression.indices = '" + indices + "'"));
    for (int64_t i = 0; i < 100; ++i) rig.gradient()[i] = static_cast<float>(i % 10);
    PayloadBytes payload = rig.encode(info_of(0.1));  // 10 values at 9, 19, …
    payload[byte] = static_cast<std::byte>(value);
    return error_of([&] { rig.decode(info_of(0.1), {payload}); });
  };
  const std::string of = "the payload of rank 0: field 0 ";
  const auto count = [&](int entries) {
    return concat(of, "has ", entries, " entries, which do not fit the field or the payload");
  };
  const auto end = [&](int byte) {
    return concat(of, "ends at byte ", byte, ", expected the payload's last");
  };
  EXPECT_EQ(complaint("u32", 0, 11), count(11));
  EXPECT_EQ(complaint("u32", 0, 9), end(76));
  EXPECT_EQ(complaint("u32", 44, 200), of + "has entry 0 after its last element");
  EXPECT_EQ(complaint("u32", 48, 9), of + "has entry 1 out of order");
  EXPECT_EQ(complaint("bitmap", 44, 255), count(18));
  EXPECT_EQ(complaint("bitmap", 56, 32), of + "has entry 9 after its last element");
  EXPECT_EQ(complaint("gamma", 44, 1), end(52));
  EXPECT_EQ(complaint("gamma", 44, 9), end(84));
  EXPECT_EQ(complaint("gamma", 48, 0), of + "has entry 0 after its last element");
}

TEST(SparseIndex, RefusesWrongOptions) {
  EXPECT_EQ(
      error_of([] { make_method("topk", "compression.indices = 'u16'"); }),
      "test.toml:1: compression.indices is 'u16', expected auto, runs16, u32, gamma or bitmap");
  EXPECT_EQ(error_of([] { make_method("dgc", "compression.selection = 'some'"); }),
            "test.toml:1: compression.selection is 'some', expected exact or sampled");
}

}  // namespace
}  // namespace wisp
