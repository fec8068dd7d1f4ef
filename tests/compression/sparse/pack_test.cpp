#include "compression/sparse/pack.h"

#include <gtest/gtest.h>

#include <cstring>

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
  const Tensor into = context.zeros({spec.numel}, DType::f32);
  const Tensor scratch = context.zeros({wire.scratch_bytes(spec, room)}, DType::u8);
  const Payload received{1, payload.raw(), payload.bytes(), complaint.device().data<int64_t>()};
  wire.decode(context.stream, spec, room, {&received, 1}, 0.5f, true, into, scratch.raw());
  complaint.fetch(context.stream);
  const Tensor sums = fetch(context.stream, into);
  const int64_t code = complaint.host().data<int64_t>()[0];
  return {code == 0 ? "" : complaint_in(code),
          {sums.data<float>(), sums.data<float>() + sums.numel()}};
}

class DeviceSparseWire : public DeviceTest {};

/// Several teams of a device share a field of 8,000 entries; each has 1,024, but for the last.
TEST_F(DeviceSparseWire, NamesTheCpusMistakes) {
  constexpr double kRatio = 0.02;
  const std::vector<Field> fields = layer_fields({400'000, 9'000}, 0);
  const UnitSpec spec{fields, 409'000};
  constexpr int64_t kEntries = 8'000 + 180, kAt = 8 + 4 * kEntries;  // two counts, then values
  UnitRig rig = wire_rig(fields, "f32", "u32");
  for (int64_t i = 0; i < spec.numel; ++i) rig.gradient()[i] = static_cast<float>(i % 1013);
  const PayloadBytes good = rig.encode(at_ratio(kRatio));
  ASSERT_EQ(good.size(), kAt + 4 * kEntries);
  const auto with = [&](int64_t entry, uint32_t position) {
    PayloadBytes payload = good;
    put<uint32_t>(payload, static_cast<size_t>(kAt + 4 * entry), position);
    return payload;
  };
  const auto entry = [&](int64_t e) {
    return at<uint32_t>(good, static_cast<size_t>(kAt + 4 * e));
  };
  const std::pair<PayloadBytes, std::string> cases[] = {
      {good, ""},
      {with(1024, entry(1023)), "field 0 has entry 1024 out of order"},
      {with(1023, entry(1024)), "field 0 has entry 1024 out of order"},
      {with(7999, 400'000), "field 0 has entry 7999 after its last element"},
      {with(8000 + 3, 9'000), "field 1 has entry 3 after its last element"}};
  const SparseWire wire(WireFormat::f32, Indices::u32);
  for (const auto& [payload, mistake] : cases) {
    const Decoded here = decoded(wire, spec, kRatio, payload, first_device());
    EXPECT_EQ(here.first, mistake.empty() ? "" : "the payload of rank 1: " + mistake);
    EXPECT_TRUE(here == decoded(wire, spec, kRatio, payload, {})) << mistake;
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
