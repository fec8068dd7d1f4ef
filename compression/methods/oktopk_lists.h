// What Ok-Topk keeps of a unit between its rounds: lists of entries, and how long they get.
#pragma once

#include <algorithm>
#include <numeric>

#include "compression/sparse/pack.h"
#include "compression/sparse/regions.h"

namespace wisp::oktopk {

inline constexpr SparseWire kWire(WireFormat::f32, Indices::u32);

inline Room whole_room(const StepInfo& info) { return {.ratio = info.ratio}; }  // k
inline Room own_room(const StepInfo& info) { return {.ratio = info.ratio, .times = 4, .over = 3}; }
inline Room part_room(const StepInfo& info) {  // C
  return {.ratio = info.ratio, .times = 3, .over = 2 * int64_t{info.workers}};
}
inline Room sum_room(const StepInfo& info) {
  Room room = part_room(info);
  room.copies = info.workers;
  return room;
}
inline Room pair_room(const StepInfo& info) { return {.ratio = info.ratio, .copies = 2}; }

inline int64_t fields(const UnitSpec& spec) { return static_cast<int64_t>(spec.fields.size()); }

/// The parts of a unit's scratch, in its order.
class Lists {
 public:
  Lists(const UnitSpec& spec, const StepInfo& info, std::byte* memory)
      : memory_(memory),
        fields_(fields(spec)),
        own_(own_room(info).of(spec)),
        sum_(std::max(sum_room(info).of(spec), whole_room(info).of(spec))),
        passing_(std::max({sum_, own_, pair_room(info).of(spec)})),
        workers_(info.workers) {}
  static int64_t bytes(const UnitSpec& spec, const StepInfo& info) {
    const Room whole = whole_room(info), own = own_room(info), sum = sum_room(info),
               part = part_room(info), pair = pair_room(info);
    return Lists(spec, info, nullptr).before(7) +
           std::max({select_list_bytes(spec, whole, Selection::Kind::exact),
                     select_list_bytes(spec, own, Selection::Kind::threshold),
                     split_list_bytes(spec, sum), split_list_bytes(spec, pair),
                     pass_list_bytes(spec, own), pass_list_bytes(spec, sum),
                     kWire.scratch_bytes(spec, part) + merge_lists_bytes(spec, sum, part),
                     kWire.scratch_bytes(spec, whole) + merge_lists_bytes(spec, whole, whole)});
  }

  SparseList own() const { return {at(0), fields_, own_}; }   // L
  SparseList sent() const { return {at(1), fields_, own_}; }  // what of it travels
  SparseList sum() const { return {at(2), fields_, sum_}; }   // of the own region; in the end S
  SparseList passing() const { return {at(3), fields_, passing_}; }
  Range* parts() const { return reinterpret_cast<Range*>(at(4)); }  // of sent: by rank, by field
  int64_t* count() const { return reinterpret_cast<int64_t*>(at(5)); }
  float* measured() const { return reinterpret_cast<float*>(at(6)); }  // 2 a field
  std::byte* work() const { return at(7); }

 private:
  int64_t before(int part) const {
    const int64_t own = SparseList::bytes(fields_, own_), sum = SparseList::bytes(fields_, sum_),
                  passing = SparseList::bytes(fields_, passing_);
    const int64_t parts = fields_ * workers_ * static_cast<int64_t>(sizeof(Range));
    const int64_t bytes[] = {own, own, sum, passing, parts, 8 * fields_, 8 * fields_};
    return std::accumulate(bytes, bytes + part, int64_t{0});
  }
  std::byte* at(int part) const { return memory_ + before(part); }

  std::byte* memory_;
  int64_t fields_, own_, sum_, passing_, workers_;
};

}  // namespace wisp::oktopk
