#include "distributed/exchange/slot.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/hash.h"

namespace wisp {
namespace {

bool travel_together(const Message& a, const Message& b) {
  return a.kind == b.kind && a.kind != Collective::pair && a.dtype == b.dtype && a.op == b.op &&
         a.variable == b.variable;
}

/// The dense segments of a bucket in a step: those without a method, and those of dense units.
std::vector<int> dense_segments(const Cut& cut, const Bucket& bucket,
                                std::span<const UnitRounds> units) {
  std::vector<int> dense = bucket.dense;
  for (const int unit : bucket.units) {
    if (units[static_cast<size_t>(unit)].compressed) continue;
    const std::vector<int>& segments = cut.units[static_cast<size_t>(unit)].segments;
    dense.insert(dense.end(), segments.begin(), segments.end());
  }
  std::sort(dense.begin(), dense.end());
  return dense;
}

void add_bucket(const Cut& cut, int index, std::span<const UnitRounds> units, DType arena,
                std::vector<Slot>& slots) {
  const Bucket& bucket = cut.buckets[static_cast<size_t>(index)];
  size_t rounds = 1;
  for (const int unit : bucket.units)
    rounds = std::max(rounds, units[static_cast<size_t>(unit)].messages.size());
  for (size_t round = 0; round < rounds; ++round) {
    const size_t first = slots.size();
    if (round == 0) {
      Slot slot{.bucket = index,
                .message = {.kind = Collective::all_reduce, .dtype = arena},
                .dense = dense_segments(cut, bucket, units)};
      if (!slot.dense.empty()) slots.push_back(std::move(slot));
    }
    for (const int unit : bucket.units) {
      const UnitRounds& rounds_of = units[static_cast<size_t>(unit)];
      if (!rounds_of.compressed || round >= rounds_of.messages.size()) continue;
      const Message& message = rounds_of.messages[round];
      const auto same =
          std::find_if(slots.begin() + static_cast<std::ptrdiff_t>(first), slots.end(),
                       [&](const Slot& slot) { return travel_together(slot.message, message); });
      if (same != slots.end()) {
        same->units.push_back(unit);
      } else {
        Slot slot{
            .bucket = index, .round = static_cast<int>(round), .message = message, .units = {unit}};
        slot.message.bytes = 0;
        slots.push_back(std::move(slot));
      }
    }
  }
}

}  // namespace

std::vector<Slot> make_slots(const Cut& cut, std::span<const UnitRounds> units, DType arena) {
  WISP_CHECK(units.size() == cut.units.size(), "make_slots: ", units.size(), " message lists for ",
             cut.units.size(), " units");
  std::vector<Slot> slots;
  for (size_t bucket = 0; bucket < cut.buckets.size(); ++bucket) {
    add_bucket(cut, static_cast<int>(bucket), units, arena, slots);
  }
  return slots;
}

uint64_t hash_slots(std::span<const Slot> slots, uint64_t seed) {
  for (const Slot& slot : slots) {
    seed = hash_number(static_cast<uint64_t>(slot.bucket), seed);
    seed = hash_number(static_cast<uint64_t>(slot.round), seed);
    seed = hash_number(static_cast<uint64_t>(slot.message.kind), seed);
    seed = hash_number(static_cast<uint64_t>(slot.message.dtype), seed);
    seed = hash_number(static_cast<uint64_t>(slot.message.op), seed);
    seed = hash_number(static_cast<uint64_t>(slot.message.variable), seed);
    for (const int unit : slot.units) seed = hash_number(static_cast<uint64_t>(unit), seed);
    for (const int segment : slot.dense) seed = hash_number(static_cast<uint64_t>(segment), seed);
  }
  return seed;
}

}  // namespace wisp
