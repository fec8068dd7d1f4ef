#include "compression/sparse/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "compression/code.h"
#include "core/copy.h"
#include "core/device_words.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

StepInfo at_ratio(double ratio) {
  StepInfo info;
  info.ratio = ratio;
  return info;
}

/// Top-k with these formats. It lists exactly the positions where the gradient is not zero.
UnitRig wire_rig(std::vector<Field> fields, const std::string& values = "f32",
                 const std::string& indices = "runs16") {
  const std::string toml =
      concat("[compression]\nvalues = '", values, "'\nindices = '", indices, "'");
  return UnitRig(std::move(fields), make_method("topk", toml));
}

template <class T>
T at(const PayloadBytes& payload, size_t byte) {
  T value;
  std::memcpy(&value, payload.data() + byte, sizeof value);
  return value;
}

template <class T>
void put(PayloadBytes& payload, size_t byte, T value) {
  std::memcpy(payload.data() + byte, &value, sizeof value);
}

// Indices 3, 4, 100, 70000, 200000: runs 3, 0, 95, (65535, pad), 4363, (65535, pad), 64463.
TEST(SparseWire, CutsRunsAsInTheExample) {
  UnitRig rig = wire_rig(layer_fields({250'000}));
  const std::vector<int64_t> indices = {3, 4, 100, 70'000, 200'000};
  for (const int64_t index : indices) rig.gradient()[index] = static_cast<float>(index);
  const StepInfo info = at_ratio(5.0 / 250'000);
  const PayloadBytes payload = rig.encode(info);
  const std::vector<float> values = {3, 4, 100, 0, 70'000, 0, 200'000};
  const std::vector<uint16_t> runs = {3, 0, 95, 65535, 4363, 65535, 64463};
  ASSERT_EQ(payload.size(), 7u * 6u);
  for (size_t entry = 0; entry < 7; ++entry) {
    EXPECT_EQ(at<float>(payload, 4 * entry), values[entry]) << entry;
    EXPECT_EQ(at<uint16_t>(payload, 28 + 2 * entry), runs[entry]) << entry;
  }
  rig.decode(info, {payload});
  for (const int64_t index : indices) EXPECT_EQ(rig.gradient()[index], static_cast<float>(index));
}

TEST(SparseWire, StatesEntriesOfAllFieldsButTheLast) {
  UnitRig rig = wire_rig(layer_fields({10, 20, 5}), "f16");
  for (int64_t i = 0; i < rig.unit.gradient.numel(); ++i) rig.gradient()[i] = static_cast<float>(i);
  const PayloadBytes payload = rig.encode(at_ratio(0.2));  // 2, 4 and 1 values
  ASSERT_EQ(payload.size(), 2u * 4u + 7u * 4u);
  EXPECT_EQ(at<uint32_t>(payload, 0), 2u);
  EXPECT_EQ(at<uint32_t>(payload, 4), 4u);
  EXPECT_EQ(static_cast<float>(at<Half>(payload, 8)), 8.0f);
  EXPECT_EQ(at<uint16_t>(payload, 8 + 14), 8u) << "runs follow all values";
}

TEST(SparseWire, NamesWhatIsWrongWithAPayload) {
  UnitRig rig = wire_rig(layer_fields({100, 50}));
  const StepInfo info = at_ratio(0.1);
  for (int64_t i = 0; i < rig.unit.gradient.numel(); ++i) rig.gradient()[i] = static_cast<float>(i);
  const PayloadBytes good = rig.encode(info);  // 10 and 5 values
  const auto complaint = [&](PayloadBytes payload) {
    return error_of([&] { rig.decode(info, {good, std::move(payload)}); });
  };
  PayloadBytes bad = good;
  put<uint32_t>(bad, 0, 16);
  EXPECT_EQ(complaint(bad),
            "the payload of rank 1: field 0 has 16 entries, which do not fit the "
            "field or the payload");
  bad = good;
  put<uint32_t>(bad, 0, 9);
  EXPECT_EQ(complaint(bad),
            "the payload of rank 1: field 1 has 6 entries, which do not fit the "
            "field or the payload");
  bad = good;
  put<uint16_t>(bad, 4 + 15 * 4, 91);
  EXPECT_EQ(complaint(bad), "the payload of rank 1: field 0 has entry 9 after its last element");
  bad = good;
  bad.pop_back();
  EXPECT_EQ(complaint(bad),
            "sparse payload of rank 1 has 93 bytes, expected 88 or at most 94 (f32, runs16)");
  bad = good;
  bad.resize(good.size() + 6);
  EXPECT_NE(complaint(bad), "no error");
  EXPECT_NE(complaint({}), "no error");
  EXPECT_EQ(complaint(good), "no error");
}

/// A decode's complaint, and the arena behind it.
using Decoded = std::pair<std::string, std::vector<float>>;
Decoded decoded(const SparseWire& wire, const UnitSpec& spec, double ratio,
                const PayloadBytes& bytes, Device device) {
  const TestContext test({.device = device});
  const Context& context = test.context;
  const DeviceWords complaint(context, {1}, DType::i64);
  const Tensor payload = context.zeros({std::ssize(bytes)}, DType::u8);
  write_from_host(context.stream, payload,
                  [&](const Tensor& to) { std::memcpy(to.raw(), bytes.data(), bytes.size()); });
  const Room room{ratio};
  const Slice& last = spec.fields.back().slices.back();
  const Tensor into = context.zeros({last.offset + last.numel}, DType::f32);
  const Tensor scratch = context.zeros({wire.scratch_bytes(spec, room)}, DType::u8);
  const Payload received{1, payload.raw(), payload.bytes(), complaint.device().data<int64_t>()};
  wire.decode(context.stream, spec, room, {&received, 1}, 0.5f, true, into, scratch.raw());
  complaint.fetch(context.stream);
  const Tensor sums = fetch(context.stream, into);
  const int64_t code = complaint.host().data<int64_t>()[0];
  return {code == 0 ? "" : complaint_in(code),
          {sums.data<float>(), sums.data<float>() + sums.numel()}};
}

/// The payload of a list with these positions in the only field.
PayloadBytes packed(const SparseWire& wire, const UnitSpec& spec, double ratio,
                    const std::vector<uint32_t>& positions, Device device) {
  const TestContext test({.device = device});
  const Context& context = test.context;
  const Room room{ratio};
  const auto entries = std::ssize(positions);
  const Tensor memory = context.zeros({layout_bytes<SparseList>(1, entries)}, DType::u8);
  const auto list = lay_out<SparseList>(memory.raw(), 1, entries);
  write_from_host(context.stream, memory, [&](const Tensor& to) {
    const auto written = lay_out<SparseList>(to.raw(), 1, entries);
    written.range[0] = {0, entries};
    for (size_t e = 0; e < positions.size(); ++e) {
      written.position[e] = positions[e];
      written.value[e] = static_cast<float>(e + 1);
    }
  });
  const Tensor scratch = context.zeros({wire.scratch_bytes(spec, room)}, DType::u8);
  const Tensor out = context.zeros({wire.capacity(spec, room)}, DType::u8);
  const DeviceWords used(context, {1}, DType::i64);
  wire.pack(context.stream, spec, room, list,
            {out.raw(), out.bytes(), used.device().data<int64_t>()}, scratch.raw());
  used.fetch(context.stream);
  const Tensor payload = fetch(context.stream, out);
  return {payload.raw(), payload.raw() + used.host().data<int64_t>()[0]};
}

/// The payload of a gradient.
PayloadBytes encoded(const SparseWire& wire, const UnitSpec& spec, double ratio,
                     const Selection& selection, const std::vector<float>& numbers, Device device) {
  const TestContext test({.device = device});
  const Context& context = test.context;
  const Tensor gradient = context.zeros({std::ssize(numbers)}, DType::f32);
  write_from_host(context.stream, gradient, [&](const Tensor& to) {
    std::copy(numbers.begin(), numbers.end(), to.data<float>());
  });
  const Source source{.gradient = gradient.data<float>()};
  const Tensor scratch =
      context.zeros({wire.encode_bytes(spec, {ratio}, selection.kind)}, DType::u8);
  const Tensor out = context.zeros({wire.capacity(spec, {ratio})}, DType::u8);
  const DeviceWords used(context, {1}, DType::i64);
  wire.encode(
      context.stream, spec, at_ratio(ratio), selection, [&](const Field&) { return source; },
      {out.raw(), out.bytes(), used.device().data<int64_t>()}, scratch.raw());
  used.fetch(context.stream);
  const Tensor payload = fetch(context.stream, out);
  return {payload.raw(), payload.raw() + used.host().data<int64_t>()[0]};
}

class DeviceSparseWire : public DeviceTest {};

/// Several teams of a device share the first field's sample of 13,676 elements, and its list.
TEST_F(DeviceSparseWire, SelectsWhatTheCpuSelects) {
  const std::vector<Field> fields = two_fields(700'000, 300'000, 500);
  const UnitSpec spec{fields, 1'000'500};
  ASSERT_EQ(select::Extent(1'000'000, 10'000).sample, 13'676);
  std::vector<float> numbers(1'000'506);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i * 7919 % 1'000'003 % 50'021) - 10'000.0f;
  const ShuffledTeams shuffled(7);
  const SparseWire wire(WireFormat::f32, Indices::u32);
  for (const Selection& selection :
       {Selection{}, Selection{.kind = Selection::Kind::sampled},
        Selection{.kind = Selection::Kind::threshold, .threshold = 39'000.0f}}) {
    const PayloadBytes here = encoded(wire, spec, 0.01, selection, numbers, first_device());
    EXPECT_GT(here.size(), 8 * 7'000u);
    EXPECT_TRUE(here == encoded(wire, spec, 0.01, selection, numbers, {}));
  }
}

/// Several teams of a device share a field of 10,000 entries; each has 1,024, but for the last.
TEST_F(DeviceSparseWire, CutsRunsWhereItsTeamsMeet) {
  constexpr double kRatio = 0.01;
  const std::vector<Field> fields = layer_fields({1'000'000});
  const UnitSpec spec{fields, 1'000'000};
  std::vector<uint32_t> positions;
  for (uint32_t e = 0; e < 10'000; ++e)  // escapes before entries 0, 1024, 2047 and 2049
    positions.push_back(70'000 + e + (e < 1024 ? 0 : 200'000) + (e < 2047 ? 0 : 65'536) +
                        (e < 2049 ? 0 : 131'072));
  const ShuffledTeams shuffled(7);
  for (const Indices indices : {Indices::runs16, Indices::u32}) {
    const SparseWire wire(WireFormat::f32, indices);
    const PayloadBytes here = packed(wire, spec, kRatio, positions, first_device());
    EXPECT_TRUE(here == packed(wire, spec, kRatio, positions, {}));
    EXPECT_EQ(here.size(),
              indices == Indices::runs16 ? (10'000 + 1 + 3 + 1 + 2) * 6 : 4 + 10'000 * 8);
  }
}

/// The first field has two slices, the second no entry.
TEST_F(DeviceSparseWire, NamesTheCpusMistakes) {
  constexpr double kRatio = 0.025;
  std::vector<Field> fields = two_fields(300'000, 100'000, 9'000);
  fields.push_back({{{410'000, 150'000}}, 150'000, 3});
  const UnitSpec spec{fields, 559'000};
  const std::string beyond = ", which do not fit the field or the payload";
  const ShuffledTeams shuffled(7);
  for (const Indices indices : {Indices::u32, Indices::runs16}) {
    const bool runs = indices == Indices::runs16;
    UnitRig rig = wire_rig(fields, "f32", runs ? "runs16" : "u32");
    for (int64_t i = 0; i < rig.unit.gradient.numel(); ++i)
      rig.gradient()[i] = 400'000 <= i && i < 410'000 ? 0.0f : static_cast<float>(i % 1013);
    const PayloadBytes good = rig.encode(at_ratio(kRatio));
    constexpr int64_t kEntries = 10'000 + 3'750;
    const int64_t counts = runs ? 2 : 3, bytes = runs ? 2 : 4;
    ASSERT_EQ(std::ssize(good), 4 * counts + (4 + bytes) * kEntries);
    const auto index = [&](int64_t e) {
      return static_cast<size_t>(4 * counts + 4 * kEntries + bytes * e);
    };
    const auto with = [&](size_t byte, auto number) {
      PayloadBytes payload = good;
      put(payload, byte, number);
      return payload;
    };
    std::vector<std::pair<PayloadBytes, std::string>> cases = {
        {good, ""}, {with(0, 11'000u), "field 0 has 11000 entries" + beyond}};
    if (runs) {
      cases.emplace_back(with(index(9'990), uint16_t{65'535}),
                         "field 0 has entry 9990 after its last element");
      cases.emplace_back(with(index(kEntries - 1), uint16_t{65'535}),
                         "field 2 has entry 3749 after its last element");
    } else {
      const auto entry = [&](int64_t e) { return at<uint32_t>(good, index(e)); };
      cases.emplace_back(with(index(1024), entry(1023)), "field 0 has entry 1024 out of order");
      cases.emplace_back(with(index(1023), entry(1024)), "field 0 has entry 1024 out of order");
      cases.emplace_back(with(index(9'999), 400'000u),
                         "field 0 has entry 9999 after its last element");
      cases.emplace_back(with(index(10'003), 150'000u),
                         "field 2 has entry 3 after its last element");
    }
    const SparseWire wire(WireFormat::f32, indices);
    for (const auto& [payload, mistake] : cases) {
      const Decoded here = decoded(wire, spec, kRatio, payload, first_device());
      EXPECT_EQ(here.first, mistake.empty() ? "" : "the payload of rank 1: " + mistake);
      EXPECT_TRUE(here == decoded(wire, spec, kRatio, payload, {})) << mistake;
    }
  }
}

TEST(SparseWire, DecodesFieldsWithoutEntries) {
  UnitRig rig = wire_rig(layer_fields({100, 50}));
  const PayloadBytes nothing(4, std::byte{0});
  rig.gradient()[3] = 5.0f;
  rig.decode(at_ratio(0.1), {nothing});
  EXPECT_EQ(rig.gradient()[3], 0.0f);
}

}  // namespace
}  // namespace wisp
