// The lists of a unit's entries that Ok-Topk keeps between its rounds, and their sizes. Letters are
// those of oktopk.cpp. Used by the comm thread.
#pragma once

#include <algorithm>

#include "compression/sparse/pack.h"

namespace wisp::oktopk {

inline constexpr SparseWire kWire(WireFormat::f32, Indices::u32);

inline Room whole_room(const StepInfo& info) { return {.ratio = info.ratio}; }  // k
inline Room own_room(const StepInfo& info) { return {.ratio = info.ratio, .times = 4, .over = 3}; }
/// Room for the entries that pass, plus one that shows that more would pass.
inline Room passing_room(const StepInfo& info) {
  Room room = own_room(info);
  room.more = 1;
  return room;
}
inline Room part_room(const StepInfo& info) {  // C
  return {.ratio = info.ratio, .times = 3, .over = 2 * int64_t{info.ranks}};
}
inline Room sum_room(const StepInfo& info) {
  Room room = part_room(info);
  room.copies = info.summands;
  return room;
}
inline Room pair_room(const StepInfo& info) { return {.ratio = info.ratio, .copies = 2}; }

inline int64_t fields(const UnitSpec& spec) { return static_cast<int64_t>(spec.fields.size()); }

/// Scratch while payloads of room `each` are added to a list of room `sum`.
struct Adding {
  std::byte* reading;
  std::byte* beside;

  Adding(Cursor& cursor, const UnitSpec& spec, const Room& sum, const Room& each)
      : reading(cursor.take<std::byte>(kWire.scratch_bytes(spec, each))),
        beside(cursor.take_last([&] { return merge_lists_bytes(spec, sum, each); })) {}
};

/// Scratch of a unit.
struct Lists {
  SparseList own;   // L
  SparseList sent;  // the part of L that is sent; before that, the selected part
  SparseList sum;   // sums of the own region; finally S
  SparseList passing;
  Range* parts;  // ranges of `sent`, by rank, then by field
  int64_t* count;
  float* measured;  // one per field
  std::byte* work;  // scratch of a selection, of pack, or of adding and reading payloads

  Lists(Cursor& cursor, const UnitSpec& spec, const StepInfo& info)
      : own(cursor, fields(spec), own_room(info).of(spec)),
        sent(cursor, fields(spec), own_room(info).of(spec)),
        sum(cursor, fields(spec), sum_entries(spec, info)),
        passing(cursor, fields(spec),
                std::max({sum_entries(spec, info), passing_room(info).of(spec),
                          pair_room(info).of(spec)})),
        parts(cursor.take<Range>(fields(spec) * info.ranks)),
        count(cursor.take<int64_t>(fields(spec))),
        measured(cursor.take<float>(fields(spec))),
        work(cursor.take_last([&] { return work_bytes(spec, info); })) {}

 private:
  static int64_t sum_entries(const UnitSpec& spec, const StepInfo& info) {
    return std::max(sum_room(info).of(spec), whole_room(info).of(spec));
  }
  static int64_t work_bytes(const UnitSpec& spec, const StepInfo& info) {
    const Room whole = whole_room(info), passing = passing_room(info), sum = sum_room(info),
               part = part_room(info), pair = pair_room(info);
    return std::max({select_list_bytes(spec, whole, Selection::Kind::exact),
                     select_list_bytes(spec, passing, Selection::Kind::threshold),
                     split_list_bytes(spec, passing), split_list_bytes(spec, sum),
                     split_list_bytes(spec, pair), layout_bytes<Adding>(spec, sum, part),
                     layout_bytes<Adding>(spec, whole, whole)});
  }
};

}  // namespace wisp::oktopk
